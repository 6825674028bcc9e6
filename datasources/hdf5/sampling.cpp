#include "sampling.hpp"

#include <algorithm>

namespace hdf5_source {

Reach::Reach(const std::vector<FieldSettings>& fields) {
  for (const FieldSettings& field : fields) {
    if (field.rows == Rows::all || field.pad != Pad::none) continue;
    const int64_t end = field.offset + static_cast<int64_t>(field.length);
    before_ = std::max(before_, static_cast<uint64_t>(std::max<int64_t>(0, -field.offset)));
    after_ = std::max(after_, static_cast<uint64_t>(std::max<int64_t>(1, end)));
  }
}

std::optional<Starts> Reach::starts(uint64_t row_count) const {
  if (row_count < rows()) return std::nullopt;
  return Starts{before_, row_count - after_};
}

uint64_t SampleTable::add(const Stretch& stretch, const Starts& starts) {
  const uint64_t count = sampling_ == Sampling::one_per_group ? 1 : (starts.last - starts.first) / stride_ + 1;
  const uint64_t begin = stretch.rows.begin;
  rows_.push_back({length_, stretch.sequence, stretch.rows, {begin + starts.first, begin + starts.last}});
  length_ += count;
  return count;
}

Sample SampleTable::at(uint64_t index) const {
  const auto after = std::ranges::upper_bound(rows_, index, {}, &Row::first);
  const Row& row = *(after - 1);
  const uint64_t start = sampling_ == Sampling::one_per_group
                             ? row.starts.first + (row.starts.last - row.starts.first) / 2
                             : row.starts.first + (index - row.first) * stride_;
  return {row.sequence, row.rows, start, row.starts};
}

}  // namespace hdf5_source
