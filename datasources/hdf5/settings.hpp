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
  int64_t axis = 0;              // along which rows are counted
  std::vector<int64_t> permute;  // axes of the dataset in a sample's order; {}: as they are
  std::vector<std::string> axes;
  std::string unit;
  bool normalize = false;
  std::optional<int64_t> channel_axis;  // of a sample; none: its last axis
  std::vector<std::string> channel_names, channel_units;
  std::string channel_names_attribute, channel_units_attribute;  // where the files say them; "": they do not

  bool has_channels() const {
    return !channel_names.empty() || !channel_units.empty() || !channel_names_attribute.empty() ||
           !channel_units_attribute.empty();
  }
};

struct SplitSettings {
  std::string name;
  std::vector<std::string> files;  // patterns below `path`
  std::string mask;                // a dataset of group names
};

struct Settings {
  std::filesystem::path path;
  std::vector<std::string> files;
  std::string groups;  // pattern over the groups of a file; "/": the file is one sequence
  bool one_per_group = false;
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
