// How a field's values come from its dataset into a sample: fixed by the first sequence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"
#include "sequence.hpp"
#include "settings.hpp"

namespace hdf5_source {

struct FieldLayout {
  FieldSettings settings;
  Finding finding;  // in the first sequence
  DLDataType dtype{};
  std::optional<std::size_t> rows_along;  // axis of the dataset; none where a sample has all of it
  std::vector<int> crop;                  // for each axis of the dataset: which of Settings::crop, or -1
  std::vector<int64_t> shape;             // of a sample
  std::vector<uint64_t> stride_bytes;     // for each axis of the dataset: one step, in a sample
  uint64_t element_bytes = 0;             // of one element of the dataset, or of its member, in a sample
  bool in_order = true;                   // a sample's axes are in the dataset's order
  // A sample as `outer` blocks of the field's rows, each row `inner_bytes` long.
  uint64_t outer = 1, inner_bytes = 0;
  std::size_t dataset = 0;             // number of its dataset among all that are read
  std::optional<uint32_t> mask_field;  // number of its pad_mask among the source's fields
  std::size_t lengths = 0;             // number of its lengths among the datasets, where the settings name them

  uint64_t bytes() const;  // of a sample
  bool is_attribute() const { return !settings.attribute.empty(); }
  bool is_label() const { return finding.is_label; }
  bool is_text() const { return finding.is_text; }
  bool has_lengths() const { return !settings.lengths.empty(); }
  bool is_read() const { return !is_attribute() && !is_label() && !is_text(); }  // sample by sample
};

// What a sample holds of values stored as `stored`.
DLDataType delivered_dtype(const FieldSettings& field, DLDataType stored);
std::string dtype_name(DLDataType dtype);

// Throws HR_INVALID_ARGUMENT for settings that do not suit what was found.
FieldLayout layout_of(const Settings& settings, const FieldSettings& field, const Sequence& sequence,
                      const Finding& finding);

// The field as the source declares it.
sdk::Field described(const Settings& settings, const FieldLayout& field);
sdk::Field described_mask(const FieldLayout& field);

// Throws HR_DATA_CORRUPT naming both files when a later sequence differs in what a sample is made of.
void require_same(const FieldLayout& field, const Sequence& first, const Sequence& other, const Finding& found);

}  // namespace hdf5_source
