// What a sweep shows while it goes on, on stderr: lines of what happened, and on a terminal a table of what is running.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "record/progress.hpp"

namespace headroom {

struct RunningRow {
  std::string id, state, position, speed, held;
};

// Lines of at most `columns` characters, a heading first: where it is narrow, columns go, the least telling first, then
// names are cut.
std::vector<std::string> running_table(const std::vector<RunningRow>& rows, size_t columns);

class SweepView {
 public:
  explicit SweepView(Terminal terminal) : terminal_(terminal) {}
  ~SweepView() { clear(); }
  SweepView(const SweepView&) = delete;
  SweepView& operator=(const SweepView&) = delete;

  // On a terminal, a few times a second.
  bool is_due() const;
  void say(const std::string& line);
  // Redraws the table, on a terminal alone; no row and no summary: takes it away.
  void show(const std::vector<RunningRow>& rows, const std::string& summary);

 private:
  void clear();

  Terminal terminal_;
  size_t drawn_ = 0;  // lines of the table on the screen
  std::chrono::steady_clock::time_point shown_at_ = {};
};

}  // namespace headroom
