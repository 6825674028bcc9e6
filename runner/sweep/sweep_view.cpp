#include "sweep/sweep_view.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "memory/readable.hpp"

namespace headroom {

namespace {

constexpr size_t most_rows = 20, least_name = 16, gap = 2;

using Cells = std::array<std::string, 5>;
constexpr std::array<size_t, 3> first_to_go = {3, 1, 4};  // speed, state, memory

// Exactly `width` characters wide.
std::string fitted(std::string text, size_t width) {
  const size_t is = width_of(text);
  if (is <= width) return text + std::string(width - is, ' ');
  // In less room dots would leave nothing of the text.
  const std::string ending = width > 6 ? "..." : "";
  size_t characters = 0, end = 0;
  while (end < text.size() && (characters < width - ending.size() || !begins_character(text[end])))
    characters += begins_character(text[end++]) ? 1 : 0;
  return text.substr(0, end) + ending;
}

}  // namespace

std::vector<std::string> running_table(const std::vector<RunningRow>& rows, size_t columns) {
  std::vector<Cells> table{{"trial", "state", "progress", "samples/s", "memory"}};
  for (const RunningRow& row : rows) table.push_back({row.id, row.state, row.position, row.speed, row.held});
  std::array<size_t, 5> widths{};
  for (const Cells& row : table) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  const auto beside_name = [&] {
    size_t sum = 0;
    for (size_t i = 1; i < widths.size(); ++i) sum += widths[i] > 0 ? widths[i] + gap : 0;
    return sum;
  };
  for (const size_t column : first_to_go) {
    // A width of 0 leaves the column out.
    if (beside_name() + std::min(widths[0], least_name) > columns) widths[column] = 0;
  }
  // Sizes are unsigned: the difference must not fall below 0.
  widths[0] = std::min(widths[0], columns - std::min(columns, beside_name()));
  std::vector<std::string> lines;
  for (const Cells& row : table) {
    std::string line = fitted(row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i)
      line += widths[i] > 0 ? std::string(gap, ' ') + fitted(row[i], widths[i]) : "";
    line.resize(line.find_last_not_of(' ') + 1);
    lines.push_back(fitted(line, std::min(width_of(line), columns)));
  }
  return lines;
}

void SweepView::clear() {
  // One line up and erased, for each (ECMA-48: CUU, EL).
  for (; drawn_ > 0; --drawn_) std::fputs("\033[1A\033[2K", stderr);
  std::fflush(stderr);
}

bool SweepView::is_due() const {
  return terminal_.control && std::chrono::steady_clock::now() - shown_at_ > std::chrono::milliseconds(400);
}

void SweepView::say(const std::string& line) {
  clear();
  std::fprintf(stderr, "%s\n", line.c_str());
}

void SweepView::show(const std::vector<RunningRow>& rows, const std::string& summary) {
  if (!terminal_.control) return;
  clear();
  shown_at_ = std::chrono::steady_clock::now();
  if (rows.empty() && summary.empty()) return;
  // One less than there are: a full line may wrap, and clear() would leave a line behind.
  const auto columns = static_cast<size_t>(std::max(1, terminal_.columns() - 1));
  std::vector<std::string> lines;
  if (!rows.empty())
    lines = running_table({rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), most_rows))},
                          columns);
  lines.push_back(fitted(summary, std::min(width_of(summary), columns)));
  for (const std::string& line : lines) std::fprintf(stderr, "%s\n", line.c_str());
  drawn_ = lines.size();
  std::fflush(stderr);
}

}  // namespace headroom
