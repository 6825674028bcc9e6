// One sequence: a file, one of its groups, or datasets of one number in a group. Its datasets run along the same rows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"
#include "settings.hpp"

namespace hdf5_source {

// The object of one sequence that a field reads.
struct Finding {
  std::vector<uint64_t> shape;         // of the dataset; {} for an attribute
  std::vector<uint64_t> member_shape;  // of an array member
  DLDataType stored{};
  sdk::Attribute attribute;               // where the field is one
  std::vector<std::string> classes = {};  // what its values mean
  std::vector<int32_t> labels = {};       // strings as numbers among `classes`, one a row
  std::vector<std::string> texts = {};    // strings as they are, one a row
  bool is_label = false, is_text = false;
};

struct Sequence {
  std::filesystem::path file;
  std::string group;                                 // "/" or "/data/demo_0"
  std::string number;                                // what a * in a field's dataset stands for; "" where none has one
  uint64_t rows = 0;                                 // of the shortest of its datasets; 1 where no field counts rows
  std::vector<sdk::Attribute> attributes;            // by field; empty where no field is one
  std::vector<std::vector<int32_t>> labels = {};     // of strings, by field; empty where no field has any
  std::vector<std::vector<std::string>> texts = {};  // the same

  std::string uneven = {};  // says which of its datasets have more rows than that; "" where none has

  // Where a dataset, as a field names it, stands in the file.
  std::string object(const std::string& dataset) const;
  // "demo_0 of /data/low_dim.hdf5", for sentences and for groups.
  std::string name(const std::filesystem::path& folder) const;
};

// The axis of the dataset along which its rows are counted, as the file has it; MATLAB's order is the file's reversed.
std::size_t row_axis(const Settings& settings, const FieldSettings& field, std::size_t axes);

// What the * of the first field that has one stands for in a group of a file, in byte order; {""} where no field has
// one. Throws HR_DATA_CORRUPT where nothing matches.
std::vector<std::string> numbers_of(const sdk::Host& host, const Settings& settings, const std::filesystem::path& file,
                                    const std::string& group);

// Looks at every field's object: shapes and types, no values but attributes. Throws HR_DATA_CORRUPT naming file, object
// and field for what is not as the field needs it.
std::vector<Finding> examine(const sdk::Host& host, const Settings& settings, Sequence& sequence);

// "'/action' of /data/a.hdf5 (field 'action')"
std::string place_of(const Sequence& sequence, const FieldSettings& field);

// Throws HR_DATA_CORRUPT: that place, then `sentence`.
[[noreturn]] void refuse(const Sequence& sequence, const FieldSettings& field, const std::string& sentence);

}  // namespace hdf5_source
