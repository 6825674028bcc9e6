// Columns of text, for terminals.
#pragma once

#include <string>
#include <vector>

namespace headroom {

// The first `left` columns are aligned left, the others right, as figures are. With `free_end` the last column is
// aligned left and not padded, for names of any length. Control characters of a cell become spaces.
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
