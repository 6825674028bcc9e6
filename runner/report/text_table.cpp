#include "report/text_table.hpp"

#include <algorithm>
#include <cstdio>

#include "memory/readable.hpp"

namespace headroom {

std::string TextTable::text() const {
  auto rows = rows_;
  for (auto& row : rows) {
    // A line break would end the row.
    for (std::string& cell : row) cell = printable(cell, cell.size());
  }
  const size_t padded = rows.front().size() - (free_end_ ? 1 : 0);
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < padded; ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(i < padded ? widths[i] - width_of(row[i]) : 0, ' ');
      line += (i > 0 ? "  " : "") + (i < left_ ? row[i] + blanks : blanks + row[i]);
    }
    // Of a blank line nothing is found, and npos + 1 is 0.
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

void TextTable::print() const { std::fputs(text().c_str(), stdout); }

}  // namespace headroom
