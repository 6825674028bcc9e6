#include "imports/csv_import.hpp"

#include <algorithm>
#include <array>
#include <boost/tokenizer.hpp>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <span>
#include <streambuf>

#include "arrays/open_files.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

constexpr uint64_t csv_block_bytes = 4 << 20;
constexpr uint64_t most_block_rows = 4096;
constexpr size_t longest_record = 64 << 20;

std::string outside_quotes(const std::string& row) {
  std::string rest;
  bool in_quotes = false;
  for (const char c : row) {
    if (c == '"') {
      in_quotes = !in_quotes;
    } else if (!in_quotes) {
      rest += c;
    }
  }
  return rest;
}

// Where decimal commas are written, semicolons divide the cells.
char delimiter_of(const std::string& first, const std::string& second) {
  const auto stands_in = [](const std::string& row, char c) { return row.find(c) != std::string::npos; };
  constexpr std::array in_order = {'\t', ';', ','};
  for (const char c : in_order) {
    if (stands_in(first, c) && stands_in(second, c)) return c;
  }
  const auto* found = std::ranges::find_if(in_order, [&](char c) { return stands_in(first, c); });
  return found == in_order.end() ? ',' : *found;
}

// The rows of a file, cell by cell. A quoted cell may hold the delimiter and line ends.
class CsvRows {
 public:
  explicit CsvRows(const std::filesystem::path& path) : stream_(path, std::ios::binary) {
    if (!stream_) throw sdk::Error(HR_IO, "it cannot be opened; see whether you may read it");
    const std::string first = skip() ? outside_quotes(record_) : "", second = skip() ? outside_quotes(record_) : "";
    stream_.seekg(0);
    line_ = row_line_ = bytes_ = 0;
    separator_ = Separator(std::string(), std::string(1, delimiter_of(first, second)), "\"");
  }

  // The next row that is not empty; false at the end.
  bool next(std::vector<std::string>& cells) {
    if (!skip()) return false;
    const boost::tokenizer<Separator> all(record_, separator_);
    cells.assign(all.begin(), all.end());
    return true;
  }
  bool skip() {
    while (read_record()) {
      if (record_.find_first_not_of(' ') != std::string::npos) return true;
    }
    return false;
  }

  uint64_t line() const { return row_line_; }  // where the row begins; 1 is the first
  uint64_t bytes() const { return bytes_; }

 private:
  using Separator = boost::escaped_list_separator<char>;

  // Without its end; false at the end of the file. A file that has no lines is not read into memory whole.
  bool read_line(std::string& line) {
    line.clear();
    std::streambuf& from = *stream_.rdbuf();
    for (int c = from.sbumpc(); c != std::char_traits<char>::eof(); c = from.sbumpc()) {
      if (c == '\n') return true;
      if (line.size() >= longest_record) throw_too_long();
      line += static_cast<char>(c);
    }
    return !line.empty();
  }

  // Lines until all quotes are closed.
  bool read_record() {
    record_.clear();
    row_line_ = line_ + 1;
    bool in_quotes = false;
    for (std::string line; read_line(line);) {
      bytes_ += line.size() + 1;
      if (line_++ == 0 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
      if (line.ends_with('\r')) line.pop_back();
      record_ += line;
      if (record_.size() > longest_record) throw_too_long();
      if (std::ranges::count(line, '"') % 2 == 1) in_quotes = !in_quotes;
      if (!in_quotes) return true;
      record_ += '\n';
    }
    if (record_.empty()) return false;
    throw sdk::Error(HR_DATA_CORRUPT, "line " + std::to_string(row_line_) + " opens a quote that never ends");
  }

  [[noreturn]] void throw_too_long() const {
    throw sdk::Error(HR_DATA_CORRUPT, "line " + std::to_string(line_ + 1) + " is longer than 64 MiB");
  }

  std::ifstream stream_;
  Separator separator_;
  std::string record_;
  uint64_t line_ = 0, row_line_ = 0, bytes_ = 0;
};

// As Python's float() takes it; an empty cell is NaN. Decimal point only, whatever the locale.
bool number_of(std::string_view text, double& value) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  text = text.substr(first, text.find_last_not_of(" \t") - first + 1);
  if (text.front() == '+' && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  // Beyond the range of float64 it is 0 or infinite to Python, and to us nothing that can be meant.
  return failed == std::errc() && end == text.data() + text.size();
}

// What pandas writes above columns without names: 0,1,2.
bool counts_up(const std::vector<std::string>& cells) {
  for (size_t c = 0; c < cells.size(); ++c) {
    if (cells[c] != std::to_string(c)) return false;
  }
  return cells.size() > 1;
}

// They are counted first: datasets of a known length are contiguous, which is read fastest and takes no more room than
// the values do.
uint64_t rows_of(const std::filesystem::path& path) {
  CsvRows rows(path);
  uint64_t count = 0;
  while (rows.skip()) ++count;
  return count;
}

bool all_numbers(const std::vector<std::string>& cells) {
  double ignored = 0;
  return std::ranges::all_of(cells, [&](const std::string& cell) { return number_of(cell, ignored); });
}

class CsvImport {
 public:
  CsvImport(const std::filesystem::path& from, const ImportOptions& options, ImportTarget& target)
      : from_(from), options_(options), target_(target), rows_(from) {}

  Imported all(const ImportProgress& progress) {
    const uint64_t bytes = std::filesystem::file_size(from_);
    uint64_t rows = rows_of(from_);
    if (read_names()) --rows;
    TableImport table(columns_, options_.columns, rows, target_);
    values_.resize(columns_.size());
    const uint64_t block_rows = std::clamp<uint64_t>(csv_block_bytes / (8 * columns_.size()), 1, most_block_rows);
    do {
      add_row(table);
      if (++held_ < block_rows) continue;
      flush(table);
      progress(rows_.bytes(), bytes);
    } while (rows_.next(cells_));
    flush(table);
    return {target_.datasets(), table.left_out()};
  }

 private:
  // Leaves the first row of values in cells_. What stands there decides which columns have numbers. false: there was no
  // row of names.
  bool read_names() {
    std::vector<std::string> names;
    if (!rows_.next(names)) throw sdk::Error(HR_DATA_CORRUPT, "it is empty");
    cells_ = names;
    const bool named = !all_numbers(names) || counts_up(names);
    if (!named) {
      names.assign(names.size(), "");
    } else if (!rows_.next(cells_)) {
      throw sdk::Error(HR_DATA_CORRUPT, "it has names of columns and no rows");
    }
    require_cells(names.size());
    double ignored = 0;
    for (size_t c = 0; c < names.size(); ++c)
      columns_.push_back({names[c].empty() ? std::to_string(c) : names[c],
                          number_of(cells_[c], ignored) ? DLDataType{kDLFloat, 64, 1} : DLDataType{}});
    return named;
  }

  void require_cells(size_t wanted) const {
    if (cells_.size() == wanted) return;
    throw sdk::Error(HR_DATA_CORRUPT, "line " + std::to_string(rows_.line()) + " has " +
                                          counted(cells_.size(), "cell") + ", the first " + std::to_string(wanted));
  }

  void add_row(const TableImport& table) {
    require_cells(columns_.size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].dtype.bits == 0) continue;
      double value = 0;
      if (!number_of(cells_[c], value) && table.used(c)) {
        throw sdk::Error(HR_DATA_CORRUPT, "line " + std::to_string(rows_.line()) + " has '" + printable(cells_[c], 40) +
                                              "' in column " + in_quotes(columns_[c].name) +
                                              ", which is no number; mend it, or choose other columns with --columns");
      }
      values_[c].push_back(value);
    }
  }

  void flush(TableImport& table) {
    std::vector<std::span<const std::byte>> blocks;
    for (const std::vector<double>& column : values_) blocks.push_back(std::as_bytes(std::span(column)));
    table.append(blocks, held_);
    for (std::vector<double>& column : values_) column.clear();
    held_ = 0;
  }

  const std::filesystem::path& from_;
  const ImportOptions& options_;
  ImportTarget& target_;
  CsvRows rows_;
  std::vector<TableColumn> columns_;
  std::vector<std::string> cells_;
  std::vector<std::vector<double>> values_;  // column by column
  uint64_t held_ = 0;                        // rows of them
};

}  // namespace

Imported import_csv(const std::filesystem::path& from, const ImportOptions& options, ImportTarget& target,
                    const ImportProgress& progress) {
  return CsvImport(from, options, target).all(progress);
}

}  // namespace headroom
