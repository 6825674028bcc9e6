#include "sweep/sweep_view.hpp"

#include <algorithm>
#include <cstdio>

namespace headroom {

namespace {

constexpr size_t most_rows = 20;

std::string cut(const std::string& text, size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

}  // namespace

void SweepView::clear() {
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
  const auto columns = static_cast<size_t>(std::max(20, terminal_.columns() - 1));
  size_t widest = 0;
  for (const RunningRow& row : rows) widest = std::max(widest, row.id.size());
  const auto put = [&](const std::string& line) {
    std::fprintf(stderr, "%s\n", line.substr(0, columns).c_str());
    ++drawn_;
  };
  for (size_t i = 0; i < std::min(rows.size(), most_rows); ++i) {
    const RunningRow& row = rows[i];
    put("  " + cut(row.id, widest) + "  " + cut(row.state, 11) + "  " + cut(row.position, 20) + "  " +
        cut(row.speed, 16) + "  " + row.held);
  }
  put(summary);
  std::fflush(stderr);
}

}  // namespace headroom
