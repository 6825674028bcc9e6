// How a model declares the fields that it takes (headroom/inputs.h), to be tried without data.
//
//   static std::vector<Input> inputs(const Options&) {
//     return {{.name = "x", .shape = {any_size, 3}}, {.name = "label", .dtype = i64, .max = 9}};
//   }
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/inputs.h"
#include "headroom/sdk/fields.hpp"

namespace headroom::sdk {

inline constexpr int64_t any_size = HR_ANY_SIZE;  // decided by the source; equal in all places

struct Input {
  std::string name = {};
  DLDataType dtype = f32;
  std::vector<int64_t> shape = {};  // of one sample; {}: a scalar
  std::string unit = {};
  double sample_rate_hz = 0.0;
  double min = 0.0, max = 0.0;  // both inclusive; equal: integers are 0 and 1, other numbers standard normal
};

namespace detail {

inline void visit_inputs(const std::vector<Input>& inputs, int32_t (*visit)(void*, const hr_input*), void* context) {
  for (const Input& input : inputs) {
    const Field field{.name = input.name,
                      .dtype = input.dtype,
                      .shape = input.shape,
                      .unit = input.unit,
                      .sample_rate_hz = input.sample_rate_hz};
    std::vector<hr_channel> no_channels;
    const hr_field native_field = field.native(no_channels);
    const hr_input native{sizeof(hr_input), 0, &native_field, input.min, input.max};
    if (visit(context, &native) != 0) return;
  }
}

}  // namespace detail

}  // namespace headroom::sdk
