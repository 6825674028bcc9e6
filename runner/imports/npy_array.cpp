#include "imports/npy_array.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "arrays/convert.hpp"
#include "headroom/sdk/error.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

[[noreturn]] void bad(const std::string& clause) { throw sdk::Error(HR_DATA_CORRUPT, clause); }

uint64_t number_at(std::span<const std::byte> file, size_t at, size_t bytes) {
  if (file.size() < at + bytes) bad("is cut off");
  uint64_t number = 0;
  std::memcpy(&number, file.data() + at, bytes);  // little-endian, as this host is (convert.cpp)
  return number;
}

// What follows a key in the header, a dictionary that numpy prints itself:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
std::string_view behind(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + key.size());
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

// Between two characters, where `text` begins with the first.
std::optional<std::string_view> enclosed(std::string_view text, char open, char close) {
  const size_t end = text.find(close, 1);
  if (!text.starts_with(open) || end == std::string_view::npos) return std::nullopt;
  return text.substr(1, end - 1);
}

// numpy's own description: byte order, kind, bytes. bits 0: nothing that a dataset of numbers holds.
DLDataType dtype_of(const std::string& type) {
  if (type.size() != 3) return {0, 0, 1};
  const auto bits = static_cast<uint8_t>((type[2] - '0') * 8);
  const bool whole = type[2] == '1' || type[2] == '2' || type[2] == '4' || type[2] == '8';
  if (type[1] == 'b' && type[2] == '1') return {kDLBool, 8, 1};
  if (type[1] == 'i' && whole) return {kDLInt, bits, 1};
  if (type[1] == 'u' && whole) return {kDLUInt, bits, 1};
  if (type[1] == 'f' && whole && type[2] != '1') return {kDLFloat, bits, 1};
  return {0, 0, 1};
}

std::vector<uint64_t> shape_of(std::string_view text) {
  std::vector<uint64_t> shape;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    uint64_t extent = 0;
    if (const auto [behind, failed] = std::from_chars(at, end, extent); failed == std::errc()) {
      shape.push_back(extent);
      at = behind;
    } else if (*at == ' ' || *at == ',') {
      ++at;
    } else {
      bad("has a shape that cannot be read: (" + printable(text, 60) + ")");
    }
  }
  return shape;
}

}  // namespace

NpyArray npy_array(std::span<const std::byte> file) {
  if (file.size() < 10 || std::memcmp(file.data(), "\x93NUMPY", 6) != 0) bad("is no array of numpy's format .npy");
  // Format 1 has a length of 2 bytes, 2 and 3 of 4.
  const bool long_header = file[6] != std::byte{1};
  const size_t begin = long_header ? 12 : 10;
  const uint64_t length = number_at(file, 8, long_header ? 4 : 2);
  // A record of many members has a long one; a plain array never has.
  if (length > file.size() - std::min<uint64_t>(begin, file.size())) bad("is cut off");
  const std::string header(reinterpret_cast<const char*>(file.data()) + begin, std::min<uint64_t>(length, 1 << 16));
  NpyArray array;
  array.type = enclosed(behind(header, "'descr':"), '\'', '\'').value_or("");
  array.dtype = dtype_of(array.type);
  if (array.dtype.bits == 0) return array;
  array.big_endian = array.type[0] == '>';
  array.column_major = behind(header, "'fortran_order':").starts_with("True");
  const auto shape = enclosed(behind(header, "'shape':"), '(', ')');
  if (!shape) bad("has no shape in its header");
  array.shape = shape_of(*shape);
  uint64_t bytes = array.dtype.bits / 8u;
  for (const uint64_t extent : array.shape) {
    if (extent > 0 && bytes > file.size() / extent) bad("is cut off");
    bytes *= extent;
  }
  array.values = file.subspan(begin + length);
  if (array.values.size() < bytes) bad("is cut off");
  array.values = array.values.first(bytes);
  // A single number is a row of its own.
  if (array.shape.empty()) array.shape = {1};
  return array;
}

DLDataType NpyArray::stored_dtype() const {
  return dtype.code == kDLFloat && dtype.bits == 16 ? DLDataType{kDLFloat, 32, 1} : dtype;
}

uint64_t NpyArray::row_values() const {
  uint64_t count = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) count *= shape[axis];
  return count;
}

void NpyArray::read_rows(uint64_t start, uint64_t rows, std::byte* to) const {
  const uint64_t from_bytes = dtype.bits / 8u, to_bytes = stored_dtype().bits / 8u, in_row = row_values();
  Conversion conversion{.from_dtype = dtype, .to_dtype = stored_dtype(), .swap = big_endian};
  if (!column_major || in_row == 1) {
    conversion.values = in_row;
    conversion.from = values.data() + start * in_row * from_bytes;
    conversion.to = to;
    conversion.from_stride = in_row * from_bytes;
    conversion.to_stride = in_row * to_bytes;
    conversion.elements = rows;
    convert(conversion);
    return;
  }
  // Value by value of a row, the first of its axes fastest, as they follow each other in the file.
  std::vector<uint64_t> index(shape.size(), 0);
  conversion.from_stride = from_bytes;
  conversion.to_stride = in_row * to_bytes;
  conversion.elements = rows;
  for (uint64_t place = 0; place < in_row; ++place) {
    uint64_t row_major = 0;
    for (size_t axis = 1; axis < shape.size(); ++axis) row_major = row_major * shape[axis] + index[axis];
    conversion.from = values.data() + (place * shape[0] + start) * from_bytes;
    conversion.to = to + row_major * to_bytes;
    convert(conversion);
    for (size_t axis = 1; axis < shape.size() && ++index[axis] == shape[axis]; ++axis) index[axis] = 0;
  }
}

}  // namespace headroom
