#include "csv.hpp"

#include <stdexcept>

namespace emg_hdf5 {

CsvReader::CsvReader(std::string_view text) : rest_(text) {
  if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
}

bool CsvReader::next(std::vector<std::string>& fields) {
  while (row(fields)) {
    if (fields.size() > 1 || !fields[0].empty()) return true;
  }
  return false;
}

bool CsvReader::row(std::vector<std::string>& fields) {
  if (rest_.empty()) return false;
  row_line_ = line_;
  fields.assign(1, "");
  while (!rest_.empty()) {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == '\n') {
      ++line_;
      return true;
    }
    if (c == ',') {
      fields.emplace_back();
    } else if (c == '"' && fields.back().empty()) {
      fields.back() = quoted();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return true;
}

std::string CsvReader::quoted() {
  std::string text;
  while (true) {
    const std::size_t end = rest_.find('"');
    if (end == std::string_view::npos) {
      throw std::invalid_argument("line " + std::to_string(row_line_) + " opens a quote that never ends");
    }
    for (const char c : rest_.substr(0, end)) line_ += c == '\n' ? 1 : 0;
    text += rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (!rest_.starts_with('"')) return text;
    text += '"';
    rest_.remove_prefix(1);
  }
}

}  // namespace emg_hdf5
