#include "imports/table_import.hpp"

#include <algorithm>
#include <cstring>
#include <fnmatch.h>

#include "arrays/convert.hpp"
#include "arrays/open_files.hpp"
#include "error.hpp"

namespace headroom {

namespace {

constexpr DLDataType float64{kDLFloat, 64, 1};

// Integers of 64 bits that a float64 cannot tell apart would be rounded without a word.
void require_exact(const TableColumn& column, std::span<const std::byte> values) {
  constexpr int64_t most = int64_t{1} << 53;
  if (column.dtype.bits != 64 || column.dtype.code == kDLFloat) return;
  for (size_t at = 0; at + 8 <= values.size(); at += 8) {
    int64_t value = 0;
    std::memcpy(&value, values.data() + at, sizeof value);
    // As an unsigned number what looks negative is larger still.
    if (value <= most && value >= (column.dtype.code == kDLUInt ? 0 : -most)) continue;
    throw sdk::Error(HR_UNSUPPORTED, "column " + in_quotes(column.name) +
                                         " has integers beyond 2^53, which a dataset with columns of other types "
                                         "cannot hold; give it a dataset of its own with --columns");
  }
}

}  // namespace

ColumnGroup column_group(const std::string& word) {
  const size_t equals = word.find('=');
  ColumnGroup group{word.substr(0, equals), {}};
  for (size_t at = equals; at != std::string::npos;) {
    const size_t end = word.find(',', at + 1);
    group.patterns.push_back(word.substr(at + 1, end == std::string::npos ? end : end - at - 1));
    at = end;
  }
  const bool empty = std::ranges::any_of(group.patterns, [](const std::string& one) { return one.empty(); });
  if (group.dataset.empty() || group.patterns.empty() || empty) {
    throw Error(Exit::bad_input, "data convert",
                "--columns '" + word + "' is not DATASET=COLUMN,...; for example --columns 'emg=emg_*'");
  }
  return group;
}

TableImport::TableImport(std::vector<TableColumn> columns, const std::vector<ColumnGroup>& groups, uint64_t rows,
                         ImportTarget& target)
    : columns_(std::move(columns)), target_(target) {
  for (const ColumnGroup& group : groups) declare(group.dataset, matching(group), rows);
  if (!groups.empty()) return;
  std::vector<size_t> numbers;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].dtype.bits == 0) continue;
    if (columns_[c].is_list) {
      declare(columns_[c].name, {c}, rows);
    } else {
      numbers.push_back(c);
    }
  }
  if (!numbers.empty()) declare("table", std::move(numbers), rows);
  if (datasets_.empty()) throw sdk::Error(HR_DATA_CORRUPT, "it has no column of numbers");
}

std::vector<size_t> TableImport::matching(const ColumnGroup& group) const {
  std::vector<size_t> found;
  for (const std::string& pattern : group.patterns) {
    bool matched = false;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const bool same = columns_[c].name == pattern;
      if (!same && ::fnmatch(pattern.c_str(), columns_[c].name.c_str(), FNM_NOESCAPE) != 0) continue;
      matched = true;
      if (columns_[c].dtype.bits == 0) {
        throw sdk::Error(HR_DATA_CORRUPT, "column " + in_quotes(columns_[c].name) + " of --columns " + group.dataset +
                                              " has no numbers");
      }
      if (std::ranges::find(found, c) == found.end()) found.push_back(c);
    }
    if (!matched)
      throw sdk::Error(HR_DATA_CORRUPT, "it has no column " + in_quotes(pattern) + " of --columns " + group.dataset);
  }
  return found;
}

void TableImport::declare(const std::string& name, std::vector<size_t> columns, uint64_t rows) {
  Dataset dataset{0, columns_[columns[0]].dtype, 0, std::move(columns)};
  std::vector<std::string> names;
  for (const size_t c : dataset.columns) {
    const TableColumn& column = columns_[c];
    if (!same_dtype(column.dtype, dataset.dtype)) dataset.dtype = float64;
    for (uint64_t i = 0; i < column.width; ++i)
      names.push_back(column.is_list ? column.name + "_" + std::to_string(i) : column.name);
  }
  dataset.row_bytes = names.size() * (dataset.dtype.bits / 8u);
  dataset.id = target_.dataset({name, dataset.dtype, {rows, names.size()}, names});
  datasets_.push_back(std::move(dataset));
}

void TableImport::append(std::span<const std::span<const std::byte>> columns, uint64_t rows) {
  for (const Dataset& dataset : datasets_) put_together(dataset, columns, rows);
  rows_ += rows;
}

void TableImport::put_together(const Dataset& dataset, std::span<const std::span<const std::byte>> columns,
                               uint64_t rows) {
  block_.resize(rows * dataset.row_bytes);
  uint64_t offset = 0;
  for (const size_t c : dataset.columns) {
    const TableColumn& column = columns_[c];
    if (!same_dtype(column.dtype, dataset.dtype)) require_exact(column, columns[c]);
    convert({.from_dtype = column.dtype,
             .to_dtype = dataset.dtype,
             .values = column.width,
             .from = columns[c].data(),
             .to = block_.data() + offset,
             .from_stride = column.width * (column.dtype.bits / 8u),
             .to_stride = dataset.row_bytes,
             .elements = rows});
    offset += column.width * (dataset.dtype.bits / 8u);
  }
  target_.append(dataset.id, block_, rows);
}

bool TableImport::used(size_t column) const {
  return std::ranges::any_of(
      datasets_, [&](const Dataset& one) { return std::ranges::find(one.columns, column) != one.columns.end(); });
}

std::vector<std::string> TableImport::left_out() const {
  std::vector<std::string> names;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (!used(c)) names.push_back(columns_[c].name);
  }
  return names;
}

}  // namespace headroom
