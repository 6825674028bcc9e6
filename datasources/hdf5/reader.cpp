#include "reader.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

#include "scatter.hpp"

namespace hdf5_source {

namespace {

using namespace sdk::literals;

constexpr std::size_t kOpenSequences = 64;

template <class Real>
std::optional<std::size_t> first_not_finite(const std::byte* values, uint64_t count) {
  return sdk::first_not_finite(std::span(reinterpret_cast<const Real*>(values), count));
}

template <class T>
void put(std::byte* slot, const sdk::Attribute& value) {
  const T number = value.type == HR_I64 ? static_cast<T>(value.i64) : static_cast<T>(value.f64);
  std::memcpy(slot, &number, sizeof number);
}

void put_attribute(std::byte* slot, DLDataType dtype, const sdk::Attribute& value) {
  const auto bytes = dtype.bits / 8u;
  if (dtype.code == kDLFloat) return bytes == 4 ? put<float>(slot, value) : put<double>(slot, value);
  if (dtype.code == kDLBool) return put<bool>(slot, value);
  switch (bytes) {
    case 1:
      return put<int8_t>(slot, {HR_I64, value.i64, 0.0, {}});
    case 2:
      return put<int16_t>(slot, {HR_I64, value.i64, 0.0, {}});
    case 4:
      return put<int32_t>(slot, {HR_I64, value.i64, 0.0, {}});
    default:
      return put<int64_t>(slot, {HR_I64, value.i64, 0.0, {}});
  }
}

}  // namespace

Reader::Place Reader::place_of(const sdk::ReadRequest& request, uint64_t i) const {
  const Settings& settings = contents_->settings;
  const Sample sample = contents_->splits[request.split()].samples.at(request.index(i));
  uint64_t start = sample.start;
  if (request.augment() && settings.one_per_group) {
    start =
        sample.allowed.first + sdk::below(request.key(i), "row"_site, sample.allowed.last - sample.allowed.first + 1);
  } else if (request.augment() && settings.jitter) {
    const uint64_t bound = std::min(settings.stride, sample.allowed.last - start + 1);
    start += sdk::below(request.key(i), "jitter"_site, bound);
  }
  return {i, sample.sequence, start};
}

// Neighbours are read one after the other, whatever the order of the batch: they share chunks.
void Reader::read(const sdk::ReadRequest& request) {
  std::vector<Place> places;
  for (uint64_t i = 0; i < request.count(); ++i) places.push_back(place_of(request, i));
  std::ranges::sort(places, [](const Place& a, const Place& b) {
    return std::tuple(a.sequence, a.start, a.i) < std::tuple(b.sequence, b.start, b.i);
  });
  for (const Place& place : places) {
    for (const auto& fields : contents_->reads) read_fields(request, place, fields);
    for (uint32_t f = 0; f < contents_->fields.size(); ++f) {
      const FieldLayout& field = contents_->fields[f];
      if (field.is_attribute() && request.wanted(f)) {
        put_attribute(request.bytes(f, place.i).data(), field.dtype,
                      contents_->sequences[place.sequence].attributes[f]);
      }
      if (field.mask_field) put_mask(request, place, field);
    }
  }
}

Reader::Slice Reader::slice_of(const FieldLayout& field, uint64_t start, uint64_t rows) {
  const auto most = static_cast<int64_t>(rows);
  const int64_t begin = static_cast<int64_t>(start) + field.settings.offset;
  const int64_t end = begin + static_cast<int64_t>(field.settings.length);
  const int64_t from = std::clamp<int64_t>(begin, 0, most), to = std::clamp<int64_t>(end, 0, most);
  if (from < to) return {static_cast<uint64_t>(from), static_cast<uint64_t>(to), static_cast<uint64_t>(from - begin)};
  if (field.settings.pad != Pad::edge || rows == 0) return {};
  return begin < 0 ? Slice{0, 1, 0} : Slice{rows - 1, rows, 0};
}

void Reader::read_fields(const sdk::ReadRequest& request, const Place& place, const std::vector<uint32_t>& fields) {
  const Sequence& sequence = contents_->sequences[place.sequence];
  const FieldLayout& first = contents_->fields[fields.front()];
  const std::size_t axes = first.finding.shape.size();
  Box start{}, count{};
  Slice slice;
  uint64_t elements = 1;
  if (first.rows_along) slice = slice_of(first, place.start, sequence.rows);
  for (std::size_t axis = 0; axis < axes; ++axis) {
    count[axis] = first.finding.shape[axis];
    if (first.rows_along == axis) {
      start[axis] = slice.begin;
      count[axis] = slice.end - slice.begin;
    } else if (first.crop[axis] >= 0) {
      const auto k = static_cast<std::size_t>(first.crop[axis]);
      const uint64_t room = contents_->crop_extents[k] - contents_->settings.crop[k];
      count[axis] = contents_->settings.crop[k];
      start[axis] = request.augment() ? sdk::below(request.key(place.i), "crop"_site, room + 1, k) : room / 2;
    }
    elements *= count[axis];
  }

  const bool whole = !first.rows_along || slice.end - slice.begin == first.settings.length;
  staged_.resize(contents_->fields.size());
  std::vector<hr_array_target> targets;
  const Open* opened = nullptr;
  const auto staged = [&](const FieldLayout& field) { return !field.in_order || (!whole && field.outer > 1); };
  for (const uint32_t f : fields) {
    if (!request.wanted(f)) continue;
    const FieldLayout& field = contents_->fields[f];
    if (opened == nullptr) opened = &open(place.sequence);
    std::byte* to = request.bytes(f, place.i).data() + slice.position * field.inner_bytes;
    if (staged(field)) {
      staged_[f].resize(elements * field.element_bytes);
      to = staged_[f].data();
    }
    const sdk::Array& array = opened->arrays[field.dataset];
    const uint32_t member = field.settings.member.empty() ? HR_WHOLE : array.member(field.settings.member);
    targets.push_back({member, field.dtype, to, 0});
  }
  if (opened == nullptr) return;
  if (elements > 0) opened->arrays[first.dataset].read_box({start.data(), axes}, {count.data(), axes}, targets);
  for (const uint32_t f : fields) {
    if (!request.wanted(f)) continue;
    const FieldLayout& field = contents_->fields[f];
    std::byte* slot = request.bytes(f, place.i).data();
    if (staged(field)) {
      const uint64_t step = field.rows_along ? field.stride_bytes[*field.rows_along] : 0;
      scatter(staged_[f].data(), {count.data(), axes}, field.stride_bytes, field.element_bytes,
              slot + slice.position * step);
    }
    if (!whole) put_padding(slot, field, slice);
    if (contents_->settings.check_finite) require_finite(slot, field, place);
  }
}

// Rows of the window that the sequence does not have.
void Reader::put_padding(std::byte* slot, const FieldLayout& field, const Slice& slice) const {
  const uint64_t length = field.settings.length, present = slice.end - slice.begin;
  const uint64_t inner = field.inner_bytes;
  for (uint64_t block = 0; block < field.outer; ++block) {
    std::byte* rows = slot + block * length * inner;
    for (uint64_t row = 0; row < length; ++row) {
      if (row >= slice.position && row < slice.position + present) continue;
      const uint64_t nearest = row < slice.position ? slice.position : slice.position + present - 1;
      if (field.settings.pad == Pad::edge && present > 0) {
        std::memcpy(rows + row * inner, rows + nearest * inner, inner);
      } else {
        std::memset(rows + row * inner, 0, inner);
      }
    }
  }
}

void Reader::put_mask(const sdk::ReadRequest& request, const Place& place, const FieldLayout& field) const {
  const auto rows = static_cast<int64_t>(contents_->sequences[place.sequence].rows);
  int64_t row = static_cast<int64_t>(place.start) + field.settings.offset;
  for (bool& padding : request.slot<bool>(*field.mask_field, place.i)) {
    padding = row < 0 || row >= rows;
    ++row;
  }
}

void Reader::require_finite(const std::byte* slot, const FieldLayout& field, const Place& place) const {
  if (field.dtype.code != kDLFloat) return;
  const bool wide = field.dtype.bits == 64;
  const uint64_t count = field.bytes() / (field.dtype.bits / 8u);
  const auto bad = wide ? first_not_finite<double>(slot, count) : first_not_finite<float>(slot, count);
  if (!bad) return;
  const Sequence& sequence = contents_->sequences[place.sequence];
  std::string where = ", value " + std::to_string(*bad);
  if (field.rows_along)
    where = ", value " + std::to_string(*bad) + " of the sample from row " + std::to_string(place.start);
  throw sdk::Error(HR_DATA_CORRUPT, hdf5_source::place_of(sequence, field.settings) + where +
                                        " is NaN or infinite; mend the data, or set check_finite = false");
}

const Reader::Open& Reader::open(uint32_t number) {
  ++uses_;
  for (Open& entry : open_) {
    if (entry.sequence != number) continue;
    entry.last_use = uses_;
    return entry;
  }
  const Sequence& sequence = contents_->sequences[number];
  Open entry{number, uses_, {}};
  for (const std::string& dataset : contents_->datasets)
    entry.arrays.emplace_back(host_, sequence.file, sequence.object(dataset));
  for (const FieldLayout& field : contents_->fields) {
    if (field.is_attribute()) continue;
    auto shape = entry.arrays[field.dataset].info().shape;
    auto expected = field.finding.shape;
    const bool enough =
        !field.rows_along || (shape.size() == expected.size() && shape[*field.rows_along] >= sequence.rows);
    if (enough && field.rows_along) shape[*field.rows_along] = expected[*field.rows_along];
    if (enough && shape == expected) continue;
    throw sdk::Error(HR_DATA_CORRUPT,
                     sequence.file.string() + " has changed since this run opened it; start the run again");
  }
  if (open_.size() < kOpenSequences) return open_.emplace_back(std::move(entry));
  Open& oldest = *std::ranges::min_element(open_, {}, &Open::last_use);
  oldest = std::move(entry);
  return oldest;
}

}  // namespace hdf5_source
