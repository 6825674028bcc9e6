#include "field.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "headroom/sdk/shape_text.hpp"

namespace hdf5_source {

namespace {

constexpr std::pair<const char*, DLDataType> kTypes[] = {
    {"float16", sdk::f16}, {"float32", sdk::f32}, {"float64", sdk::f64}, {"bool", sdk::boolean},
    {"uint8", sdk::u8},    {"int8", sdk::i8},     {"uint16", sdk::u16},  {"int16", sdk::i16},
    {"uint32", sdk::u32},  {"int32", sdk::i32},   {"uint64", sdk::u64},  {"int64", sdk::i64}};

// Axes of the dataset, numbered as the file has them, in the order a sample has them. MATLAB's are the file's reversed.
std::vector<std::size_t> sample_order(const FieldSettings& field, std::size_t axes, bool matlab,
                                      const std::string& what) {
  std::vector<std::size_t> order(axes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!field.permute.empty()) {
    std::vector<std::size_t> asked(field.permute.begin(), field.permute.end());
    std::ranges::sort(asked);
    if (asked != order)
      sdk::invalid(what + " has " + std::to_string(axes) + " axes; permute must name each of 0 to " +
                   std::to_string(axes == 0 ? 0 : axes - 1) + " once");
    order.assign(field.permute.begin(), field.permute.end());
  }
  for (std::size_t& axis : order) axis = matlab ? axes - 1 - axis : axis;
  return order;
}

// The extent of a dataset's axis in a sample; 0: a sample has no such axis.
uint64_t extent_of(const Settings& settings, const FieldLayout& field, std::size_t axis) {
  if (field.rows_along == axis) return field.settings.rows == Rows::row ? 0 : field.settings.length;
  return field.crop[axis] >= 0 ? settings.crop[static_cast<std::size_t>(field.crop[axis])] : field.finding.shape[axis];
}

void assign_crop(const Settings& settings, FieldLayout& field, std::span<const std::size_t> axis_of) {
  field.crop.assign(field.finding.shape.size(), -1);
  for (std::size_t i = 0; i < field.settings.axes.size() && !settings.crop.empty(); ++i) {
    const auto name = std::ranges::find(settings.crop_axes, field.settings.axes[i]);
    if (name == settings.crop_axes.end()) continue;
    const std::string what = "field '" + field.settings.name + "': axis '" + field.settings.axes[i] + "' ";
    if (i >= axis_of.size()) sdk::invalid(what + "lies within a member; only axes of a dataset can be cropped");
    if (field.rows_along == axis_of[i]) sdk::invalid(what + "counts rows; it cannot be cropped");
    const auto number = static_cast<std::size_t>(name - settings.crop_axes.begin());
    const uint64_t extent = field.finding.shape[axis_of[i]];
    if (settings.crop[number] > extent) {
      sdk::invalid(what + "has " + std::to_string(extent) + " elements; a crop of " +
                   std::to_string(settings.crop[number]) + " does not fit");
    }
    field.crop[axis_of[i]] = static_cast<int>(number);
  }
}

void assign_strides(const Settings& settings, FieldLayout& field, std::span<const std::size_t> order) {
  uint64_t step = field.element_bytes;
  field.stride_bytes.assign(field.finding.shape.size(), 0);
  field.inner_bytes = field.bytes();
  for (std::size_t i = order.size(); i-- > 0;) {
    const uint64_t extent = extent_of(settings, field, order[i]);
    field.stride_bytes[order[i]] = extent == 0 ? field.bytes() : step;
    if (field.rows_along == order[i] && extent != 0) field.inner_bytes = step;
    step *= std::max<uint64_t>(1, extent);
  }
  if (field.settings.rows != Rows::all) field.outer = field.bytes() / (field.inner_bytes * field.settings.length);
}

void require_classes_suit(const FieldLayout& field, const std::string& place) {
  if (field.is_label() && !sdk::same_type(field.dtype, sdk::i64))
    sdk::invalid(place + " holds strings, which arrive as int64; take out dtype = \"" + field.settings.dtype + "\"");
  if (field.is_text() && !sdk::same_type(field.dtype, sdk::u8))
    sdk::invalid(place + " holds strings, whose bytes arrive as uint8; take out dtype = \"" + field.settings.dtype +
                 "\"");
  if (!field.finding.classes.empty() && field.dtype.code != kDLInt && field.dtype.code != kDLUInt) {
    sdk::invalid(place + " has classes, but a sample holds " + dtype_name(field.dtype) +
                 "; classes name the values of integers");
  }
}

}  // namespace

uint64_t FieldLayout::bytes() const {
  uint64_t all = dtype.bits / 8u;
  for (const int64_t extent : shape) all *= static_cast<uint64_t>(extent);
  return all;
}

std::string dtype_name(DLDataType dtype) {
  for (const auto& [name, type] : kTypes) {
    if (sdk::same_type(type, dtype)) return name;
  }
  return "an unknown type";
}

DLDataType delivered_dtype(const FieldSettings& field, DLDataType stored) {
  for (const auto& [name, type] : kTypes) {
    if (field.dtype == name) return type;
  }
  return stored.code == kDLFloat ? sdk::f32 : stored;
}

FieldLayout layout_of(const Settings& settings, const FieldSettings& field, const Sequence& sequence,
                      const Finding& finding) {
  FieldLayout layout;
  layout.settings = field;
  layout.finding = finding;
  layout.dtype = delivered_dtype(field, finding.stored);
  if (layout.dtype.bits == 0) sdk::invalid(place_of(sequence, field) + " has a type that cannot be read");
  const std::size_t axes = finding.shape.size();
  if (field.rows != Rows::all) layout.rows_along = row_axis(settings, field, axes);
  const std::vector<std::size_t> order = sample_order(field, axes, settings.matlab, place_of(sequence, field));
  layout.in_order = std::ranges::is_sorted(order);
  std::vector<std::size_t> axis_of;  // of the dataset, for each axis of a sample
  for (const std::size_t axis : order) {
    if (layout.rows_along != axis || field.rows == Rows::window) axis_of.push_back(axis);
  }
  assign_crop(settings, layout, axis_of);
  for (const std::size_t axis : axis_of)
    layout.shape.push_back(static_cast<int64_t>(extent_of(settings, layout, axis)));
  for (const uint64_t extent : finding.member_shape) layout.shape.push_back(static_cast<int64_t>(extent));
  layout.element_bytes = layout.dtype.bits / 8u;
  for (const uint64_t extent : finding.member_shape) layout.element_bytes *= extent;
  assign_strides(settings, layout, order);

  require_classes_suit(layout, place_of(sequence, field));
  if (layout.has_lengths() && layout.crop[1] >= 0)
    sdk::invalid(place_of(sequence, field) + " is cropped along the axis that its lengths count; take one of them out");
  const std::string what =
      place_of(sequence, field) + ": a sample has " + std::to_string(layout.shape.size()) + " axes, ";
  if (layout.shape.size() > HR_MAX_DIMS - 1) sdk::invalid(what + "more than the 7 that are allowed");
  if (field.axes.size() > layout.shape.size()) sdk::invalid(what + "axes names " + std::to_string(field.axes.size()));
  if (field.channel_axis && *field.channel_axis >= static_cast<int64_t>(layout.shape.size()))
    sdk::invalid(what + "channel_axis = " + std::to_string(*field.channel_axis) + " is none of them");
  if (field.normalize && (layout.dtype.code != kDLFloat || layout.dtype.bits < 32)) {
    sdk::invalid(what + "which hold " + dtype_name(layout.dtype) +
                 "; only floats are normalised: set dtype = \"float32\", or normalize = false");
  }
  return layout;
}

sdk::Field described(const Settings& settings, const FieldLayout& field) {
  const FieldSettings& own = field.settings;
  sdk::Field result{.name = own.name, .dtype = field.dtype, .shape = field.shape, .axes = own.axes, .unit = own.unit};
  result.normalize = own.normalize;
  if (own.normalize || own.has_channels())
    result.channel_axis = static_cast<int>(own.channel_axis.value_or(static_cast<int64_t>(field.shape.size()) - 1));
  if (own.rows == Rows::window) result.sample_rate_hz = settings.sample_rate_hz;
  return result;
}

sdk::Field described_mask(const FieldLayout& field) {
  const int64_t length =
      field.has_lengths() || field.is_text() ? field.shape.front() : static_cast<int64_t>(field.settings.length);
  return {.name = field.settings.pad_mask, .dtype = sdk::boolean, .shape = {length}};
}

void require_same(const FieldLayout& field, const Sequence& first, const Sequence& other, const Finding& found) {
  const auto differ = [&](const std::string& here, const std::string& there) {
    throw sdk::Error(HR_DATA_CORRUPT, place_of(other, field.settings) + " has " + there + ", where " +
                                          first.file.string() + " has " + here +
                                          "; all sequences need the same: leave it out, or mend it");
  };
  auto here = field.finding.shape, there = found.shape;
  const auto axes = [](const auto& shape) { return std::to_string(shape.size()) + " axes"; };
  if (here.size() != there.size()) differ(axes(here), axes(there));
  if (field.rows_along) here[*field.rows_along] = there[*field.rows_along];
  if (here != there) differ("shape " + sdk::shape_text(field.finding.shape), "shape " + sdk::shape_text(found.shape));
  if (field.finding.member_shape != found.member_shape)
    differ("member shape " + sdk::shape_text(field.finding.member_shape),
           "member shape " + sdk::shape_text(found.member_shape));
  if (!sdk::same_type(field.dtype, delivered_dtype(field.settings, found.stored)))
    differ(dtype_name(field.finding.stored), dtype_name(found.stored));
  if (field.is_label() != found.is_label)
    differ(field.is_label() ? "strings" : "numbers", found.is_label ? "strings" : "numbers");
  if (field.finding.classes != found.classes)
    differ("the classes " + sdk::listing(field.finding.classes), "the classes " + sdk::listing(found.classes));
}

}  // namespace hdf5_source
