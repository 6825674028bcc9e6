// The display of a running sweep on stderr: lines for what happened, and on a terminal a table of what is running.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "record/progress.hpp"

namespace headroom {

struct RunningRow {
  std::string id, state, position, speed, held;
};

// The table as lines of at most `columns` characters, a heading first. Where that is too narrow, columns are left out,
// the least important first; then names are cut.
std::vector<std::string> running_table(const std::vector<RunningRow>& rows, size_t columns);

class SweepView {
 public:
  explicit SweepView(Terminal terminal) : terminal_(terminal) {}
  ~SweepView() { clear(); }
  SweepView(const SweepView&) = delete;
  SweepView& operator=(const SweepView&) = delete;

  // Whether to redraw now: a few times a second, on a terminal only.
  bool is_due() const;
  void say(const std::string& line);
  // Redraws the table, on a terminal only. Without rows and summary it removes the table.
  void show(const std::vector<RunningRow>& rows, const std::string& summary);

 private:
  void clear();

  Terminal terminal_;
  size_t drawn_ = 0;  // lines of the table on the screen
  std::chrono::steady_clock::time_point shown_at_ = {};
};

}  // namespace headroom
