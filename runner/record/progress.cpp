#include "record/progress.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

#include "memory/readable.hpp"
#include "record/numbers.hpp"

namespace headroom {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The first of the three that is set decides, as for setlocale().
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = variable(name);
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

int Terminal::columns() const {
  struct winsize size {};
  if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

Terminal terminal_of(int file) {
  Terminal terminal{.file = file};
  const std::string term = variable("TERM");
  terminal.control = ::isatty(file) == 1 && !term.empty() && term != "dumb";
  terminal.utf8 = locale_is_utf8();
  // NO_COLOR counts when it is set and not empty (no-color.org).
  terminal.color = terminal.control && variable("NO_COLOR").empty();
  return terminal;
}

namespace {

// In columns. A narrower bar says nothing that the percentage does not.
constexpr int narrowest_bar = 10, widest_bar = 30;

int percent(const ProgressState& state) {
  return static_cast<int>(100.0 * static_cast<double>(state.done) / static_cast<double>(state.total));
}

std::string count(const ProgressState& state) {
  std::string text = std::to_string(state.done);
  return state.total > 0 ? text + "/" + std::to_string(state.total) : text;
}

int width(const std::string& text) { return static_cast<int>(width_of(text)); }

// The first byte of a character is the last of it to go, so that none is left in half.
std::string cut(std::string text, int columns) {
  while (!text.empty() && width(text) > columns) text.pop_back();
  return text;
}

std::string repeat(const char* text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string aligned(int number, size_t columns) {
  const std::string digits = std::to_string(number);
  return std::string(columns - std::min(columns, digits.size()), ' ') + digits;
}

// `cells` wide.
std::string draw_bar(const ProgressState& state, const Terminal& terminal, int cells) {
  const bool utf8 = terminal.utf8;
  // Two cells are for the brackets.
  const int inside = utf8 ? cells : cells - 2;
  const double share = static_cast<double>(state.done) / static_cast<double>(state.total);
  const int full = std::clamp(static_cast<int>(share * inside), 0, inside);
  const std::string filled = repeat(utf8 ? "━" : "=", full), rest = repeat(utf8 ? "─" : "-", inside - full);
  const std::string bar = terminal.color ? "\x1b[32m" + filled + "\x1b[0m\x1b[2m" + rest + "\x1b[0m" : filled + rest;
  return utf8 ? bar : "[" + bar + "]";
}

}  // namespace

std::string shown_value(const std::string& name, double value, const std::string& title) {
  std::string shown = name;
  if (!title.empty() && shown.starts_with(title + "/")) shown = shown.substr(title.size() + 1);
  if (shown.ends_with("/s")) return short_number(value) + " " + shown;
  return shown + " " + short_number(value);
}

std::string progress_bar(const ProgressState& state, const Terminal& terminal, int columns) {
  // The last column stays free: text that fills it makes some terminals wrap, and the bar is not redrawn in place.
  const int room = std::max(columns - 1, 0);
  std::string line = state.epoch + " " + state.title;
  if (state.total > 0) line += aligned(percent(state), 4) + "%";
  if (width(line) > room) return cut(line, room);

  int used = width(line);
  const int cells = std::min(std::clamp(columns / 4, narrowest_bar, widest_bar), room - used - 1);
  if (state.total > 0 && cells >= narrowest_bar) {
    line += " " + draw_bar(state, terminal, cells);
    used += 1 + cells;
  }
  // Of the rest what fits, in order; once something does not, nothing behind it is shown.
  std::vector<std::string> rest = {" " + count(state)};
  if (state.seconds_left >= 0) rest.push_back("  " + short_duration(state.seconds_left) + " left");
  for (const auto& [name, value] : state.values) rest.push_back("  " + shown_value(name, value, state.title));
  for (const std::string& piece : rest) {
    used += width(piece);
    if (used > room) break;
    line += piece;
  }
  return line;
}

std::string progress_text(const ProgressState& state) {
  std::string text = state.epoch + " " + state.title + ": " + count(state);
  if (state.total > 0) text += " (" + std::to_string(percent(state)) + "%)";
  for (const auto& [name, value] : state.values) text += ", " + shown_value(name, value, state.title);
  if (state.seconds_left >= 0) text += ", " + short_duration(state.seconds_left) + " left";
  return text;
}

namespace {

constexpr double seconds_between_draws = 0.1;
// Back to column one, then ECMA-48's erase in line, from the cursor to the end.
constexpr std::string_view clear_line = "\r\x1b[K";

}  // namespace

double steady_seconds() {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return now.count();
}

Progress::Progress(Terminal terminal, int64_t log_every, Seconds clock)
    : terminal_(terminal), log_every_(std::max<int64_t>(log_every, 1)), clock_(std::move(clock)) {}

Progress::~Progress() {
  if (visible_) put("\n");
}

void Progress::begin(const std::string& epoch, const std::string& title, int64_t total, int64_t done) {
  began_ = clock_();
  // Validation takes the bar over, and the line at the end tells the time of the whole epoch.
  if (!open_) epoch_began_ = began_;
  open_ = true;
  // Steps of an earlier process took none of this one's time.
  first_done_ = done;
  state_ = {.epoch = epoch, .title = title, .done = done, .total = total};
  if (terminal_.control) draw();
}

void Progress::update(int64_t done, const std::vector<std::pair<std::string, double>>& values) {
  if (!open_) return;
  state_.done = done;
  state_.values = values;
  if (terminal_.control) {
    if (clock_() - drawn_ >= seconds_between_draws) draw();
  } else if (done % log_every_ == 0) {
    state_.seconds_left = seconds_left();
    put(progress_text(state_) + "\n");
  }
}

void Progress::end(const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [name, value] : values) summary += (summary.empty() ? "" : ", ") + shown_value(name, value, "");
  end(summary);
}

void Progress::end(const std::string& summary) {
  if (!open_) return;
  open_ = false;
  std::string line = state_.epoch + ":" + (summary.empty() ? "" : " ") + summary;
  line += " (" + short_duration(clock_() - epoch_began_) + ")\n";
  put(visible_ ? std::string(clear_line) + line : line);
  visible_ = false;
}

void Progress::say(std::string_view line) {
  put((visible_ ? std::string(clear_line) : std::string()).append(line).append("\n"));
  if (visible_) draw();
}

void Progress::draw() {
  drawn_ = clock_();
  state_.seconds_left = seconds_left();
  // Cleared behind the text and not before it: nothing flickers.
  put("\r" + progress_bar(state_, terminal_, terminal_.columns()) + "\x1b[K");
  visible_ = true;
}

// At the mean speed since begin().
double Progress::seconds_left() const {
  const int64_t taken = state_.done - first_done_;
  if (state_.total <= 0 || taken <= 0) return -1;
  return (clock_() - began_) / static_cast<double>(taken) *
         static_cast<double>(std::max<int64_t>(state_.total - state_.done, 0));
}

void Progress::put(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = ::write(terminal_.file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace headroom
