// [data.options] as written, not yet compared with any file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"

namespace hdf5_source {

namespace sdk = headroom::sdk;

// Which part of its dataset a sample has.
enum class Rows { window, row, all };
// What a sample is of a sequence: windows begin at every stride; one of it; or each row, which nothing ties to its
// neighbours.
enum class Sampling { windows, one_per_group, rows };
// The values of rows beyond the ends of a sequence.
enum class Pad { none, zeros, edge };

struct FieldSettings {
  std::string name;
  std::string dataset;    // a * in its last part numbers the sequences of a group
  std::string member;     // of a compound; "": the plain element
  std::string attribute;  // of the object `dataset`, in place of its values; "": none
  std::string dtype;      // "auto" or a name
  Rows rows = Rows::window;
  uint64_t length = 0;  // rows of a window
  int64_t offset = 0;   // rows from the sample's first row
  Pad pad = Pad::none;
  std::string pad_mask;          // name of the field that says which rows are padding; "": none
  std::string lengths;           // a dataset: how many values of each row count; "": all
  int64_t axis = 0;              // along which rows are counted
  std::vector<int64_t> permute;  // axes of the dataset in a sample's order; {}: as they are
  std::vector<std::string> axes;
  std::string unit;
  bool normalize = false;
  std::optional<int64_t> channel_axis;  // of a sample; none: its last axis
  std::vector<std::string> channel_names, channel_units;
  std::string channel_names_attribute, channel_units_attribute;  // where the files say them; "": they do not
  std::vector<std::string> classes;                              // what its values 0, 1, ... mean
  std::string classes_dataset;                                   // of strings: the same, in the files; "": none
  uint64_t text_bytes = 0;                                       // of strings that arrive as bytes; 0: they do not

  bool has_channels() const {
    return !channel_names.empty() || !channel_units.empty() || !channel_names_attribute.empty() ||
           !channel_units_attribute.empty();
  }
};

// Rows [begin, end).
struct RowRange {
  uint64_t begin = 0, end = 0;
};

struct SplitSettings {
  std::string name;
  std::vector<std::string> files;  // patterns below `path`
  std::string mask;                // a dataset of group names, or of a 0 or 1 for each row or episode
  std::optional<RowRange> rows;
};

struct Settings {
  std::filesystem::path path;
  std::vector<std::string> files;
  std::string groups;        // pattern over the groups of a file; "/": the file is one sequence
  std::string episode_ends;  // a dataset: the rows where sequences end, which lie end to end; "": none do
  Sampling sampling = Sampling::windows;
  uint64_t stride = 1;
  bool jitter = true, matlab = false, check_finite = true;
  std::vector<uint64_t> crop;
  std::vector<std::string> crop_axes;
  double sample_rate_hz = 0.0;
  std::vector<FieldSettings> fields;
  std::vector<SplitSettings> splits;
};

sdk::OptionList option_list();

// Throws HR_INVALID_ARGUMENT for what contradicts itself.
Settings read_settings(const sdk::Options& options);

}  // namespace hdf5_source
