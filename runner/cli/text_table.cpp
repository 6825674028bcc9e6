#include "cli/text_table.hpp"

#include <algorithm>
#include <cstdio>

namespace headroom {

void TextTable::print() const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows_) {
    std::string text;
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      text += (i < left_ ? row[i] + blanks : blanks + row[i]) + "  ";
    }
    std::printf("%s%s\n", text.c_str(), row.back().c_str());
  }
}

}  // namespace headroom
