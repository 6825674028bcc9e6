// Columns of text on stdout.
#pragma once

#include <string>
#include <vector>

namespace headroom {

// Figures to the right, and last a name as long as it likes to be; the first `left` columns begin at the left.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heading, size_t left = 0) : rows_{std::move(heading)}, left_(left) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  size_t left_;
};

}  // namespace headroom
