// The element types of safetensors files and their DLPack names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headroom/dlpack.h"

namespace headroom {

// nullopt where the other side has no such type.
std::optional<DLDataType> dtype_from_safetensors(std::string_view name);
std::optional<std::string_view> dtype_to_safetensors(DLDataType dtype);

// "F64, F32, ..." for error sentences.
std::string safetensors_dtypes();

}  // namespace headroom
