// Finds NaN and infinite values in samples that a source delivered.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugins/source.hpp"

namespace headroom {

struct BadValue {
  uint64_t sample = 0;  // in the batch
  std::string text;     // "field 'x' holds nan at [0, 2]"
};

// The first bad value of a batch; nullopt: all values are finite. `tensors` are those of `fields`, [samples, shape...].
// Tensors without data, and those that are neither float32 nor float64, are skipped. [any]
std::optional<BadValue> find_bad_value(std::span<const Field> fields, std::span<const DLTensor> tensors);

}  // namespace headroom
