// Columns of a table as HDF5 datasets: those that `data convert --columns` puts together, or all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "imports/import_target.hpp"

namespace headroom {

// emg=emg_*,aux: the dataset [rows, columns] of the columns that match, pattern by pattern.
struct ColumnGroup {
  std::string dataset;
  std::vector<std::string> patterns;  // with * and ?
};
// Throws Error(bad_input) for a word that is none.
ColumnGroup column_group(const std::string& word);

struct TableColumn {
  std::string name;
  DLDataType dtype{};  // bits 0: no numbers
  uint64_t width = 1;  // numbers in a row
  bool is_list = false;
};

class TableImport {
 public:
  // Declares the datasets. Without `groups`: each list column is one, and all other numbers are "table". Throws
  // sdk::Error where a pattern matches no column, or one without numbers, and where none is left.
  TableImport(std::vector<TableColumn> columns, const std::vector<ColumnGroup>& groups, uint64_t rows,
              ImportTarget& target);

  // Dense values of every column, {} of those that are not used().
  void append(std::span<const std::span<const std::byte>> columns, uint64_t rows);

  bool used(size_t column) const;
  std::vector<std::string> left_out() const;  // names of columns that are in no dataset
  uint64_t rows() const { return rows_; }

 private:
  struct Dataset {
    uint32_t id = 0;
    DLDataType dtype{};
    uint64_t row_bytes = 0;
    std::vector<size_t> columns;
  };
  std::vector<size_t> matching(const ColumnGroup& group) const;
  void declare(const std::string& name, std::vector<size_t> columns, uint64_t rows);
  void put_together(const Dataset& dataset, std::span<const std::span<const std::byte>> columns, uint64_t rows);

  std::vector<TableColumn> columns_;
  ImportTarget& target_;
  std::vector<Dataset> datasets_;
  std::vector<std::byte> block_;
  uint64_t rows_ = 0;
};

}  // namespace headroom
