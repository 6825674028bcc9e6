#include "reader.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

#include "integers.hpp"
#include "scatter.hpp"

namespace hdf5_source {

namespace {

using namespace sdk::literals;

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
  if (request.augment() && settings.sampling == Sampling::one_per_group) {
    start =
        sample.allowed.first + sdk::below(request.key(i), "row"_site, sample.allowed.last - sample.allowed.first + 1);
  } else if (request.augment() && settings.jitter) {
    const uint64_t bound = std::min(settings.stride, sample.allowed.last - start + 1);
    start += sdk::below(request.key(i), "jitter"_site, bound);
  }
  return {i, sample.sequence, sample.rows, start};
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
      if (field.is_label() && request.wanted(f)) put_labels(request.bytes(f, place.i).data(), place, f);
      if (field.is_text() && request.wanted(f)) {
        const std::span<std::byte> slot = request.bytes(f, place.i);
        const std::string& text = text_of(place, f);
        std::memcpy(slot.data(), text.data(), text.size());
        std::memset(slot.data() + text.size(), 0, slot.size() - text.size());
      }
      if (field.mask_field) put_mask(request, place, f);
    }
  }
}

Reader::Slice Reader::slice_of(const FieldLayout& field, const Place& place) {
  const auto least = static_cast<int64_t>(place.rows.begin), most = static_cast<int64_t>(place.rows.end);
  const int64_t begin = static_cast<int64_t>(place.start) + field.settings.offset;
  const int64_t end = begin + static_cast<int64_t>(field.settings.length);
  const int64_t from = std::clamp(begin, least, most), to = std::clamp(end, least, most);
  if (from < to) return {static_cast<uint64_t>(from), static_cast<uint64_t>(to), static_cast<uint64_t>(from - begin)};
  if (field.settings.pad != Pad::edge || least == most) return {};
  return begin < least ? Slice{place.rows.begin, place.rows.begin + 1, 0}
                       : Slice{place.rows.end - 1, place.rows.end, 0};
}

Reader::Box Reader::box_of(const sdk::ReadRequest& request, const Place& place, const FieldLayout& field) const {
  Box box;
  box.axes = field.finding.shape.size();
  if (field.rows_along) box.slice = slice_of(field, place);
  for (std::size_t axis = 0; axis < box.axes; ++axis) {
    box.count[axis] = field.finding.shape[axis];
    if (field.rows_along == axis) {
      box.start[axis] = box.slice.begin;
      box.count[axis] = box.slice.end - box.slice.begin;
    } else if (field.crop[axis] >= 0) {
      const auto k = static_cast<std::size_t>(field.crop[axis]);
      const uint64_t room = contents_->crop_extents[k] - contents_->settings.crop[k];
      box.count[axis] = contents_->settings.crop[k];
      box.start[axis] = request.augment() ? sdk::below(request.key(place.i), "crop"_site, room + 1, k) : room / 2;
    }
  }
  return box;
}

void Reader::read_fields(const sdk::ReadRequest& request, const Place& place, const std::vector<uint32_t>& fields) {
  const FieldLayout& first = contents_->fields[fields.front()];
  Box box = box_of(request, place, first);
  const bool whole = !first.rows_along || box.slice.end - box.slice.begin == first.settings.length;
  staged_.resize(contents_->fields.size());
  std::vector<Target> targets;
  const Arrays* arrays = nullptr;
  for (const uint32_t f : fields) {
    if (!request.wanted(f)) continue;
    if (arrays == nullptr) arrays = &open_.get(place.sequence, [&] { return opened(place.sequence); });
    const FieldLayout& field = contents_->fields[f];
    const sdk::Array& array = (*arrays)[field.dataset];
    std::byte* slot = request.bytes(f, place.i).data();
    Target target{&field, field.settings.member.empty() ? HR_WHOLE : array.member(field.settings.member), slot,
                  slot + box.slice.position * field.inner_bytes, !field.in_order || (!whole && field.outer > 1)};
    if (target.staged) {
      staged_[f].resize(box.elements() * field.element_bytes);
      target.to = staged_[f].data();
    }
    targets.push_back(target);
  }
  if (arrays == nullptr) return;
  if (first.has_lengths()) box.count[1] = counted(*arrays, place, first);
  const bool finite = box.elements() == 0 || read_box((*arrays)[first.dataset], box, targets);
  for (const Target& target : targets) {
    const FieldLayout& field = *target.field;
    if (target.staged) {
      const uint64_t step = field.rows_along ? field.stride_bytes[*field.rows_along] : 0;
      scatter(target.to, {box.count.data(), box.axes}, field.stride_bytes, field.element_bytes,
              target.slot + box.slice.position * step);
    }
    if (first.has_lengths()) {
      const uint64_t present = box.count[1] * (field.bytes() / field.finding.shape[1]);
      std::memset(target.slot + present, 0, field.bytes() - present);
    }
    if (!whole) put_padding(target.slot, field, box.slice);
    if (!finite) require_finite(target, place);
  }
}

// False where values are to be looked at for NaN and infinity, and not all are known to be finite.
bool Reader::read_box(const sdk::Array& array, const Box& box, std::span<const Target> targets) const {
  std::vector<hr_array_target> native;
  for (const Target& target : targets) native.push_back({target.member, target.field->dtype, target.to, 0});
  const std::span start(box.start.data(), box.axes), count(box.count.data(), box.axes);
  if (contents_->settings.check_finite) return array.read_box_check_finite(start, count, native);
  array.read_box(start, count, native);
  return true;
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

void Reader::put_mask(const sdk::ReadRequest& request, const Place& place, uint32_t f) {
  const FieldLayout& field = contents_->fields[f];
  if (!request.wanted(*field.mask_field)) return;
  const std::span<bool> mask = request.slot<bool>(*field.mask_field, place.i);
  if (field.has_lengths() || field.is_text()) {
    const uint64_t present =
        field.is_text() ? text_of(place, f).size()
                        : counted(open_.get(place.sequence, [&] { return opened(place.sequence); }), place, field);
    for (uint64_t i = 0; i < mask.size(); ++i) mask[i] = i >= present;
    return;
  }
  const auto least = static_cast<int64_t>(place.rows.begin), most = static_cast<int64_t>(place.rows.end);
  int64_t row = static_cast<int64_t>(place.start) + field.settings.offset;
  for (bool& padding : mask) {
    padding = row < least || row >= most;
    ++row;
  }
}

// How many values of the field's row count; none of a row that is padding.
uint64_t Reader::counted(const Arrays& arrays, const Place& place, const FieldLayout& field) const {
  const Slice slice = slice_of(field, place);
  if (slice.begin == slice.end) return 0;
  const int64_t present = read_integers(arrays[field.lengths], slice.begin, 1).front();
  const uint64_t most = field.finding.shape[1];
  if (present >= 0 && static_cast<uint64_t>(present) <= most) return static_cast<uint64_t>(present);
  const Sequence& sequence = contents_->sequences[place.sequence];
  throw sdk::Error(HR_DATA_CORRUPT, hdf5_source::place_of(sequence, field.settings) + " has " + std::to_string(most) +
                                        " values a row, but '" + sequence.object(field.settings.lengths) + "' has " +
                                        std::to_string(present) + " for row " + std::to_string(slice.begin) +
                                        "; mend the file");
}

// "" of a row that is padding.
const std::string& Reader::text_of(const Place& place, uint32_t f) const {
  static const std::string none;
  const Slice slice = slice_of(contents_->fields[f], place);
  return slice.begin == slice.end ? none : contents_->sequences[place.sequence].texts[f][slice.begin];
}

void Reader::put_labels(std::byte* slot, const Place& place, uint32_t f) const {
  const FieldLayout& field = contents_->fields[f];
  const std::vector<int32_t>& labels = contents_->sequences[place.sequence].labels[f];
  const Slice slice = field.rows_along ? slice_of(field, place) : Slice{0, labels.size(), 0};
  std::byte* to = slot + slice.position * sizeof(int64_t);
  for (uint64_t row = slice.begin; row < slice.end; ++row, to += sizeof(int64_t)) {
    const int64_t label = labels[row];
    std::memcpy(to, &label, sizeof label);
  }
  if (field.rows_along) put_padding(slot, field, slice);
}

void Reader::require_finite(const Target& target, const Place& place) const {
  const FieldLayout& field = *target.field;
  if (field.dtype.code != kDLFloat) return;
  const uint64_t value_bytes = field.dtype.bits / 8u, count = field.bytes() / value_bytes;
  const auto found =
      value_bytes == 8 ? first_not_finite<double>(target.slot, count) : first_not_finite<float>(target.slot, count);
  if (!found) return;
  std::string where = ", value " + std::to_string(*found);
  if (field.rows_along) where += " of the sample from row " + std::to_string(place.start);
  throw sdk::Error(HR_DATA_CORRUPT, hdf5_source::place_of(contents_->sequences[place.sequence], field.settings) +
                                        where + " is NaN or infinite; mend the data, or set check_finite = false");
}

Reader::Arrays Reader::opened(uint32_t number) const {
  const Sequence& sequence = contents_->sequences[number];
  Arrays arrays;
  for (const std::string& dataset : contents_->datasets)
    arrays.emplace_back(host_, sequence.file, sequence.object(dataset));
  for (const FieldLayout& field : contents_->fields) {
    if (!field.is_read()) continue;
    auto shape = arrays[field.dataset].info().shape;
    auto expected = field.finding.shape;
    const bool enough =
        !field.rows_along || (shape.size() == expected.size() && shape[*field.rows_along] >= sequence.rows);
    if (enough && field.rows_along) shape[*field.rows_along] = expected[*field.rows_along];
    if (enough && shape == expected) continue;
    throw sdk::Error(HR_DATA_CORRUPT,
                     sequence.file.string() + " has changed since this run opened it; start the run again");
  }
  return arrays;
}

}  // namespace hdf5_source
