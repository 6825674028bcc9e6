// Comma-separated values as spreadsheets and pandas write them (RFC 4180): quotes, CRLF, a byte order mark.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace emg_hdf5 {

class CsvReader {
 public:
  explicit CsvReader(std::string_view text);

  // The next row that is not empty; false at the end. Throws std::invalid_argument for a quote that never ends.
  bool next(std::vector<std::string>& fields);
  std::size_t line() const { return row_line_; }  // where that row begins; 1 is the first

 private:
  bool row(std::vector<std::string>& fields);
  std::string quoted();

  std::string_view rest_;
  std::size_t line_ = 1, row_line_ = 1;
};

}  // namespace emg_hdf5
