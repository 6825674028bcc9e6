#include "record/progress.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <unistd.h>

#include "record/numbers.hpp"

namespace headroom {
namespace {

constexpr double seconds_between_draws = 0.1;
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
  if (!open_) epoch_began_ = began_;
  open_ = true;
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
