// Columns of text, for terminals.
#pragma once

#include <string>
#include <vector>

namespace headroom {

// The first `left` columns begin at the left; figures end at the right, but for the last column with a `free_end`: a
// name as long as it likes to be. Control characters of a cell become spaces.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heading, size_t left = 0, bool free_end = true)
      : rows_{std::move(heading)}, left_(left), free_end_(free_end) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;
  void print() const;  // on stdout

 private:
  std::vector<std::vector<std::string>> rows_;
  size_t left_;
  bool free_end_;
};

}  // namespace headroom
