#include "scatter.hpp"

#include <cstring>

namespace hdf5_source {

namespace {

template <std::size_t bytes>
void put_run(const std::byte* from, uint64_t count, uint64_t stride_bytes, std::byte* to) {
  for (uint64_t i = 0; i < count; ++i) std::memcpy(to + i * stride_bytes, from + i * bytes, bytes);
}

void put_run(const std::byte* from, uint64_t count, uint64_t stride_bytes, uint64_t element_bytes, std::byte* to) {
  switch (element_bytes) {
    case 1:
      return put_run<1>(from, count, stride_bytes, to);
    case 2:
      return put_run<2>(from, count, stride_bytes, to);
    case 4:
      return put_run<4>(from, count, stride_bytes, to);
    case 8:
      return put_run<8>(from, count, stride_bytes, to);
    default:
      for (uint64_t i = 0; i < count; ++i) std::memcpy(to + i * stride_bytes, from + i * element_bytes, element_bytes);
  }
}

}  // namespace

void scatter(const std::byte* from, std::span<const uint64_t> count, std::span<const uint64_t> stride_bytes,
             uint64_t element_bytes, std::byte* to) {
  if (count.empty()) {
    std::memcpy(to, from, element_bytes);
  } else if (count.size() == 1) {
    put_run(from, count[0], stride_bytes[0], element_bytes, to);
  } else {
    uint64_t step = element_bytes;
    for (const uint64_t extent : count.subspan(1)) step *= extent;
    for (uint64_t i = 0; i < count[0]; ++i)
      scatter(from + i * step, count.subspan(1), stride_bytes.subspan(1), element_bytes, to + i * stride_bytes[0]);
  }
}

}  // namespace hdf5_source
