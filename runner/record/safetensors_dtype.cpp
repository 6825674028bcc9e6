#include "record/safetensors_dtype.hpp"

namespace headroom {
namespace {

struct Named {
  std::string_view name;
  DLDataType dtype;
};

constexpr Named dtypes[] = {
    {"F64", {kDLFloat, 64, 1}}, {"F32", {kDLFloat, 32, 1}}, {"F16", {kDLFloat, 16, 1}}, {"BF16", {kDLBfloat, 16, 1}},
    {"I64", {kDLInt, 64, 1}},   {"I32", {kDLInt, 32, 1}},   {"I16", {kDLInt, 16, 1}},   {"I8", {kDLInt, 8, 1}},
    {"U64", {kDLUInt, 64, 1}},  {"U32", {kDLUInt, 32, 1}},  {"U16", {kDLUInt, 16, 1}},  {"U8", {kDLUInt, 8, 1}},
    {"BOOL", {kDLBool, 8, 1}},
};

}  // namespace

std::optional<DLDataType> dtype_from_safetensors(std::string_view name) {
  for (const Named& known : dtypes) {
    if (known.name == name) return known.dtype;
  }
  return std::nullopt;
}

std::optional<std::string_view> dtype_to_safetensors(DLDataType dtype) {
  for (const Named& known : dtypes) {
    if (known.dtype.code == dtype.code && known.dtype.bits == dtype.bits && dtype.lanes == 1) return known.name;
  }
  return std::nullopt;
}

std::string safetensors_dtypes() {
  std::string list;
  for (const Named& known : dtypes) list.append(list.empty() ? "" : ", ").append(known.name);
  return list;
}

}  // namespace headroom
