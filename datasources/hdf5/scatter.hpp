// A dense block of elements put where a sample's layout wants each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hdf5_source {

// Element (i, j, ...) of the block [count...] goes to `to` + i * stride_bytes[0] + j * stride_bytes[1] + ...
void scatter(const std::byte* from, std::span<const uint64_t> count, std::span<const uint64_t> stride_bytes,
             uint64_t element_bytes, std::byte* to);

}  // namespace hdf5_source
