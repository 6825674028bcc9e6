#include "arrays/convert.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace headroom {

namespace {

static_assert(std::endian::native == std::endian::little, "the arrays service assumes a little-endian host");

// Types of their own, so that float16 and bool are told from the integers of their size.
struct Half {
  uint16_t bits;
};
struct Truth {
  uint8_t byte;
};

// IEEE 754 binary16: a sign, 5 bits of exponent with bias 15, 10 bits of fraction.
float widen(Half half) {
  const int exponent = (half.bits >> 10) & 0x1F;
  const int fraction = half.bits & 0x3FF;
  const float sign = (half.bits & 0x8000) != 0 ? -1.0f : 1.0f;
  // A subnormal number has no implied leading 1.
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent < 31) return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return fraction == 0 ? sign * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
}

template <class T>
T load(const std::byte* from, bool swap) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), from, sizeof(T));
  if (swap) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

// One value: any bool but 0 counts as 1, and a float rounds to nearest.
template <class To, class From>
To cast(From value) {
  if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, Half>) {
    return value;
  } else if constexpr (std::is_same_v<From, Half>) {
    return cast<To>(widen(value));
  } else if constexpr (std::is_same_v<From, Truth>) {
    return cast<To>(static_cast<uint8_t>(value.byte != 0));
  } else if constexpr (std::is_same_v<To, Truth>) {
    return {static_cast<uint8_t>(value != From{0})};
  } else {
    return static_cast<To>(value);
  }
}

constexpr uint64_t part_bytes = 8 << 10;  // written before it is checked: the first-level cache still has it then

// Checks elements that were just written.
bool check_rows(const Conversion& c, uint64_t bytes) {
  if (c.check == FiniteCheck::none) return true;
  if (c.to_stride == bytes) return all_finite(c.to, c.elements * bytes, c.check);
  bool finite = true;
  for (uint64_t e = 0; e < c.elements; ++e) finite = all_finite(c.to + e * c.to_stride, bytes, c.check) && finite;
  return finite;
}

// Copies and checks rows in registers, in one pass: `bytes` is a multiple of a register.
template <size_t bytes, FiniteCheck check>
bool copy_checked_rows(const Conversion& c) {
  using Watch = FiniteWatch<check>;
  using Register = typename Watch::Register;
  Watch watch;
  const std::byte* from = c.from;
  std::byte* to = c.to;
  for (uint64_t e = 0; e < c.elements; ++e, from += c.from_stride, to += c.to_stride) {
#pragma GCC unroll 16
    for (size_t at = 0; at < bytes; at += sizeof(Register)) {
      Register values;
      std::memcpy(&values, from + at, sizeof values);
      watch.see(values);
      std::memcpy(to + at, &values, sizeof values);
    }
  }
  return watch.finite();
}

// Rows whose size the compiler knows: a call of memcpy() would cost more than a short row.
template <size_t bytes>
bool copy_rows(const Conversion& c) {
  // FiniteWatch works on registers of 16 bytes.
  if constexpr (bytes % 16 == 0) {
    if (c.check == FiniteCheck::float32) return copy_checked_rows<bytes, FiniteCheck::float32>(c);
    if (c.check == FiniteCheck::float64) return copy_checked_rows<bytes, FiniteCheck::float64>(c);
  }
  const std::byte* from = c.from;
  std::byte* to = c.to;
  for (uint64_t e = 0; e < c.elements; ++e, from += c.from_stride, to += c.to_stride) std::memcpy(to, from, bytes);
  return check_rows(c, bytes);
}

// Rows of up to 16 vectors of 16 bytes, as compounds of a time stamp and an array of channels are, have a function for
// each length: the compiler unrolls the copy. Longer rows are worth a call.
constexpr uint64_t vector_bytes = 16, most_vectors = 16;

template <size_t... n>
bool copy_vectors(const Conversion& c, uint64_t vectors, std::index_sequence<n...>) {
  static constexpr std::array<bool (*)(const Conversion&), sizeof...(n)> copies{&copy_rows<vector_bytes*(n + 1)>...};
  return copies[vectors - 1](c);
}

bool copy_rows(const Conversion& c, uint64_t bytes) {
  if (c.from_stride == bytes && c.to_stride == bytes)
    return copy_block(c.to, c.from, c.elements * bytes, c.check, c.past_caches);
  if (bytes % vector_bytes == 0 && bytes > 0 && bytes <= most_vectors * vector_bytes)
    return copy_vectors(c, bytes / vector_bytes, std::make_index_sequence<most_vectors>());
  switch (bytes) {
    case 1:
      return copy_rows<1>(c);
    case 4:
      return copy_rows<4>(c);
    case 8:
      return copy_rows<8>(c);
    default:
      break;
  }
  bool finite = true;
  for (uint64_t e = 0; e < c.elements; ++e)
    finite = copy_block(c.to + e * c.to_stride, c.from + e * c.from_stride, bytes, c.check, false) && finite;
  return finite;
}

// Converts `values` neighbours, four at a time, so that the compiler can use vector instructions.
template <class From, class To, bool swap>
void convert_row(const std::byte* from, std::byte* to, uint64_t values) {
  constexpr uint64_t lanes = 4;
  uint64_t v = 0;
  for (; v + lanes <= values; v += lanes) {
    std::array<To, lanes> row;
    for (uint64_t i = 0; i < lanes; ++i) row[i] = cast<To>(load<From>(from + (v + i) * sizeof(From), swap));
    std::memcpy(to + v * sizeof(To), row.data(), sizeof row);
  }
  for (; v < values; ++v) {
    const To value = cast<To>(load<From>(from + v * sizeof(From), swap));
    std::memcpy(to + v * sizeof(To), &value, sizeof(To));
  }
}

template <class From, class To, bool swap>
void convert_rows(const Conversion& c) {
  const bool dense = c.from_stride == c.values * sizeof(From) && c.to_stride == c.values * sizeof(To);
  if (dense) return convert_row<From, To, swap>(c.from, c.to, c.elements * c.values);
  for (uint64_t e = 0; e < c.elements; ++e)
    convert_row<From, To, swap>(c.from + e * c.from_stride, c.to + e * c.to_stride, c.values);
}

template <class From, class To>
bool run(const Conversion& c) {
  const uint64_t bytes = c.values * sizeof(To);
  // Bool is converted even to bool: a stored byte may be neither 0 nor 1.
  if (std::is_same_v<From, To> && !c.swap && !std::is_same_v<From, Truth>) return copy_rows(c, bytes);
  // Only the check needs parts.
  const uint64_t most = c.check == FiniteCheck::none ? c.elements : std::max<uint64_t>(1, part_bytes / bytes);
  bool finite = true;
  for (uint64_t done = 0; done < c.elements; done += most) {
    Conversion part = c;
    part.from += done * c.from_stride;
    part.to += done * c.to_stride;
    part.elements = std::min(most, c.elements - done);
    // As a template argument, so that the inner loop has no branch. A single byte has no order.
    c.swap && sizeof(From) > 1 ? convert_rows<From, To, true>(part) : convert_rows<From, To, false>(part);
    finite = check_rows(part, bytes) && finite;
  }
  return finite;
}

// Calls visit(T{}) with the C++ type of `dtype`. False where there is none.
template <class Visit>
bool with_type(DLDataType dtype, Visit&& visit) {
  if (dtype.lanes != 1) return false;
  switch (dtype.code << 8 | dtype.bits) {
    case kDLInt << 8 | 8:
      visit(int8_t{});
      return true;
    case kDLInt << 8 | 16:
      visit(int16_t{});
      return true;
    case kDLInt << 8 | 32:
      visit(int32_t{});
      return true;
    case kDLInt << 8 | 64:
      visit(int64_t{});
      return true;
    case kDLUInt << 8 | 8:
      visit(uint8_t{});
      return true;
    case kDLUInt << 8 | 16:
      visit(uint16_t{});
      return true;
    case kDLUInt << 8 | 32:
      visit(uint32_t{});
      return true;
    case kDLUInt << 8 | 64:
      visit(uint64_t{});
      return true;
    case kDLFloat << 8 | 16:
      visit(Half{});
      return true;
    case kDLFloat << 8 | 32:
      visit(float{});
      return true;
    case kDLFloat << 8 | 64:
      visit(double{});
      return true;
    case kDLBool << 8 | 8:
      visit(Truth{});
      return true;
    default:
      return false;
  }
}

// What convertible() promises. Only rounding to a float and the two values of bool lose anything.
template <class From, class To>
constexpr bool fits() {
  if constexpr (std::is_same_v<From, To> || std::is_same_v<To, Truth>) return true;
  if constexpr (std::is_same_v<To, Half>) return false;
  if constexpr (std::is_floating_point_v<To>) return true;
  if constexpr (std::is_same_v<From, Truth>) return std::is_integral_v<To>;
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    // `digits` leaves out the sign bit: uint8 has 8 and int16 has 15, so the one fits into the other.
    return (std::is_signed_v<To> || std::is_unsigned_v<From>)&&std::numeric_limits<From>::digits <=
           std::numeric_limits<To>::digits;
  }
  return false;
}

}  // namespace

std::string array_dtype_name(DLDataType dtype) {
  if (!with_type(dtype, [](auto) {})) return "nothing this host reads";
  if (dtype.code == kDLBool) return "bool";
  return (dtype.code == kDLInt ? "int" : dtype.code == kDLUInt ? "uint" : "float") + std::to_string(dtype.bits);
}

bool convertible(DLDataType from, DLDataType to) {
  bool possible = false;
  with_type(from, [&](auto source) {
    with_type(to, [&](auto target) { possible = fits<decltype(source), decltype(target)>(); });
  });
  return possible;
}

bool convert(const Conversion& conversion) {
  bool finite = true;
  // Every pair of types that converts has code of its own; this picks the one to run.
  with_type(conversion.from_dtype, [&](auto source) {
    with_type(conversion.to_dtype, [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      if constexpr (fits<From, To>()) finite = run<From, To>(conversion);
    });
  });
  return finite;
}

}  // namespace headroom
