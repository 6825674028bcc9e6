#include "arrays/hdf5_layout.hpp"

#include <algorithm>
#include <optional>

namespace headroom {

namespace {

// Bytes. A damaged header may declare any size, and buffers hold at least one record.
constexpr uint64_t largest_record = 64 << 20;

struct Number {
  DLDataType dtype;
  bool big_endian;
};

// numpy writes bool as an enumeration of FALSE = 0 and TRUE = 1 over int8.
bool is_bool(hid_t type) {
  int8_t value = 0;
  return H5Tget_nmembers(type) == 2 && H5Tget_size(type) == 1 && H5Tenum_valueof(type, "FALSE", &value) >= 0 &&
         value == 0 && H5Tenum_valueof(type, "TRUE", &value) >= 0 && value == 1;
}

// IEEE 754 binary16, for which libhdf5 1.10 has no predefined type.
bool is_half(hid_t type) {
  size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  return H5Tget_size(type) == 2 && H5Tget_ebias(type) == 15 && H5Tget_norm(type) == H5T_NORM_IMPLIED &&
         H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 && sign == 15 &&
         exponent == 10 && exponent_bits == 5 && mantissa == 0 && mantissa_bits == 10;
}

std::optional<Number> number(hid_t type) {
  const size_t bytes = H5Tget_size(type);
  const bool big = H5Tget_order(type) == H5T_ORDER_BE;
  const auto bits = static_cast<uint8_t>(8 * bytes);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: {
      // A precision below the size leaves bits of padding, which convert() does not know.
      const bool whole = (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && H5Tget_precision(type) == 8 * bytes;
      if (!whole || (!big && H5Tget_order(type) != H5T_ORDER_LE)) return std::nullopt;
      const uint8_t code = H5Tget_sign(type) == H5T_SGN_NONE ? kDLUInt : kDLInt;
      return Number{{code, bits, 1}, big && bytes > 1};
    }
    case H5T_FLOAT: {
      const bool single = H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0;
      const bool twice = H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0;
      if (!single && !twice && !is_half(type)) return std::nullopt;
      return Number{{kDLFloat, bits, 1}, big};
    }
    case H5T_ENUM: {
      if (is_bool(type)) return Number{{kDLBool, 8, 1}, false};
      // Any other enumeration reads as its integers.
      const Handle base(H5Tget_super(type));
      return base ? number(base.get()) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

// Memory and file agree byte by byte, so that a whole record can be copied as it is.
bool plain_bytes(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  return kind == H5T_OPAQUE || kind == H5T_BITFIELD || kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM ||
         (kind == H5T_STRING && H5Tis_variable_str(type) == 0);
}

// False for an array of more values than its bytes hold.
bool take_shape(hid_t array, ArrayMember& member) {
  const int axes = H5Tget_array_ndims(array);
  hsize_t extent[H5S_MAX_RANK];
  if (axes < 1 || axes > HR_MAX_DIMS || H5Tget_array_dims2(array, extent) < 0) return false;
  for (int axis = 0; axis < axes; ++axis) {
    // Checked before each product, so that it cannot overflow.
    if (extent[axis] == 0 || member.values > largest_record / extent[axis]) return false;
    member.shape.push_back(extent[axis]);
    member.values *= extent[axis];
  }
  return true;
}

ArrayMember describe(hid_t type, std::string name) {
  ArrayMember member;
  member.name = std::move(name);
  member.type_name = hdf5_type_name(type);
  std::optional<Number> found;
  if (H5Tget_class(type) == H5T_ARRAY) {
    const Handle base(H5Tget_super(type));
    member.type_name = "array of " + hdf5_type_name(base.get());
    if (!take_shape(type, member)) return member;
    found = number(base.get());
  } else {
    found = number(type);
  }
  // A damaged type may contradict itself: it stays unreadable.
  if (found && member.values * (found->dtype.bits / 8u) == H5Tget_size(type)) {
    member.dtype = found->dtype;
    member.big_endian = found->big_endian;
  }
  return member;
}

void take_members(hid_t type, ArrayLayout& layout) {
  bool whole = true;  // the record can be read as the file has it
  const int count = H5Tget_nmembers(type);
  std::vector<Handle> types;
  for (int i = 0; i < count; ++i) {
    types.emplace_back(H5Tget_member_type(type, static_cast<unsigned>(i)));
    char* name = H5Tget_member_name(type, static_cast<unsigned>(i));
    ArrayMember member = describe(types.back().get(), name != nullptr ? name : "");
    H5free_memory(name);
    member.offset = member.file_offset = H5Tget_member_offset(type, static_cast<unsigned>(i));
    // A member that reaches beyond its record is damaged, and not readable.
    if (member.file_offset + H5Tget_size(types.back().get()) > layout.element_bytes) member.dtype.bits = 0;
    whole &= member.readable() || plain_bytes(types.back().get());
    layout.members.push_back(std::move(member));
  }
  layout.record_bytes = layout.element_bytes;
  layout.memory_type = Handle(H5Tcopy(type));
  layout.as_in_file = whole;
  if (whole) return;

  // Lists, references and the like have another form in memory: a record of the readable members alone.
  layout.record_bytes = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    if (!layout.members[i].readable()) continue;
    layout.members[i].offset = layout.record_bytes;
    layout.record_bytes += H5Tget_size(types[i].get());
  }
  layout.memory_type = Handle();
  // No member is readable, so every target is refused before a type in memory is needed.
  if (layout.record_bytes == 0) return;
  layout.memory_type = Handle(H5Tcreate(H5T_COMPOUND, layout.record_bytes));
  for (size_t i = 0; i < types.size(); ++i) {
    const ArrayMember& member = layout.members[i];
    if (member.readable()) H5Tinsert(layout.memory_type.get(), member.name.c_str(), member.offset, types[i].get());
  }
}

void take_type(hid_t dataset, const std::string& what, ArrayLayout& layout) {
  const Handle own(H5Dget_type(dataset));
  const Handle type(own ? H5Tcopy(own.get()) : H5I_INVALID_HID);  // never tied to the file
  if (!type)
    throw sdk::Error(HR_DATA_CORRUPT,
                     what + " has a type that cannot be read (" + hdf5_reason() + "); copy the file again");
  layout.element_bytes = H5Tget_size(type.get());
  if (layout.element_bytes == 0 || layout.element_bytes > largest_record) {
    throw sdk::Error(HR_UNSUPPORTED, what + " has elements of " + std::to_string(layout.element_bytes) +
                                         " bytes; records of 1 byte to 64 MiB can be read");
  }
  layout.compound = H5Tget_class(type.get()) == H5T_COMPOUND;
  if (layout.compound) return take_members(type.get(), layout);
  layout.element = describe(type.get(), "");
  if (!layout.element.shape.empty()) layout.element.dtype.bits = 0;  // hr_array_info has no place for its shape
  if (H5Tget_class(type.get()) == H5T_VLEN) {
    const Handle value(H5Tget_super(type.get()));
    layout.list_value = describe(value.get(), "");
    if (!layout.list_value.shape.empty()) layout.list_value.dtype.bits = 0;  // lists of arrays
  }
  layout.record_bytes = layout.element_bytes;
  layout.as_in_file = layout.element.readable();
  layout.memory_type = Handle(H5Tcopy(type.get()));
}

void take_shape(hid_t dataset, const std::string& what, ArrayLayout& layout) {
  const Handle space(H5Dget_space(dataset));
  const int axes = space ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (axes < 0)
    throw sdk::Error(HR_DATA_CORRUPT,
                     what + " has a shape that cannot be read (" + hdf5_reason() + "); copy the file again");
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) {
    throw sdk::Error(HR_UNSUPPORTED,
                     what + " is declared without any data (a null dataspace); write it again with its values");
  }
  if (axes > HR_MAX_DIMS) {
    throw sdk::Error(HR_UNSUPPORTED, what + " has " + std::to_string(axes) + " axes; at most 8 can be read");
  }
  layout.shape.resize(static_cast<size_t>(axes));
  std::vector<hsize_t> extent(static_cast<size_t>(axes) + 1);
  H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr);
  std::copy_n(extent.begin(), axes, layout.shape.begin());
}

// libhdf5 itself believes a header that promises more values than the file holds. Nothing stored at all reads as the
// fill value.
void require_whole(hid_t dataset, const std::string& what, const ArrayLayout& layout) {
  const uint64_t stored = H5Dget_storage_size(dataset);
  uint64_t needed = layout.element_bytes;
  bool fits = true;
  for (const uint64_t extent : layout.shape) fits = fits && !__builtin_mul_overflow(needed, extent, &needed);
  if (stored == 0 || (fits && needed <= stored)) return;
  throw sdk::Error(HR_DATA_CORRUPT, what + " stores " + std::to_string(stored) +
                                        " bytes, fewer than its shape needs; copy the file again or leave it out");
}

void take_storage(hid_t dataset, const std::string& what, ArrayLayout& layout) {
  const Handle plist(H5Dget_create_plist(dataset));
  if (H5Pget_layout(plist.get()) == H5D_CHUNKED) {
    hsize_t extent[H5S_MAX_RANK];
    const int axes = H5Pget_chunk(plist.get(), H5S_MAX_RANK, extent);
    for (int axis = 0; axis < axes; ++axis) layout.chunk.push_back(extent[axis]);
  }
  // Only a contiguous dataset inside of the file stores all bytes of its shape: chunks may be missing or compressed.
  if (H5Pget_layout(plist.get()) == H5D_CONTIGUOUS && H5Pget_external_count(plist.get()) == 0)
    require_whole(dataset, what, layout);
  // Without a filter libhdf5 would fail at the first read, in the middle of a run.
  const int filters = H5Pget_nfilters(plist.get());
  layout.filtered = filters > 0;
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    char name[64] = "";
    const H5Z_filter_t id =
        H5Pget_filter2(plist.get(), static_cast<unsigned>(i), &flags, &values, nullptr, sizeof name, name, &config);
    if (id < 0 || H5Zfilter_avail(id) > 0) continue;
    name[sizeof name - 1] = '\0';
    throw sdk::Error(HR_UNSUPPORTED,
                     what + " is compressed with filter " + std::to_string(id) +
                         (name[0] != '\0' ? " (" + std::string(name) + ")" : "") +
                         ", which libhdf5 does not have here; name its plugin folder in HDF5_PLUGIN_PATH, or rewrite "
                         "the file: h5repack -f GZIP=4");
  }
}

}  // namespace

uint64_t ArrayLayout::chunk_bytes() const {
  uint64_t bytes = chunk.empty() ? 0 : element_bytes;
  for (const uint64_t extent : chunk) bytes *= extent;  // libhdf5 keeps chunks below 4 GiB
  return bytes;
}

ArrayLayout read_layout(hid_t dataset, const std::string& what) {
  ArrayLayout layout;
  take_shape(dataset, what, layout);
  take_type(dataset, what, layout);
  take_storage(dataset, what, layout);
  return layout;
}

}  // namespace headroom
