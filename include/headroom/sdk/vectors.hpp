// Vectors of float32 for kernels (cpu_kernel.hpp), and the product that most of them come down to. Needs no LibTorch.
//
// A kernel is written for a number of lanes: template <int lanes> struct Work, run as Work<16> or Work<8> by
// vector_lanes(). Compile with -Wno-psabi: no vector is passed to another unit.
#pragma once

#include <cstdint>

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom::sdk {

// GCC ignores these attributes where the number of lanes is a template's parameter.
template <int lanes>
struct VectorOf;
template <>
struct VectorOf<8> {
  using type = float __attribute__((vector_size(32), aligned(4), may_alias));
  using whole = uint32_t __attribute__((vector_size(32), aligned(4), may_alias));
};
template <>
struct VectorOf<16> {
  using type = float __attribute__((vector_size(64), aligned(4), may_alias));
  using whole = uint32_t __attribute__((vector_size(64), aligned(4), may_alias));
};
template <int lanes>
using Vector = typename VectorOf<lanes>::type;
template <int lanes>
using WholeVector = typename VectorOf<lanes>::whole;  // of as many whole numbers

// The vector that begins at p, which need not be aligned.
template <int lanes>
HEADROOM_KERNEL_BODY Vector<lanes>& vector_at(float* p) {
  return *reinterpret_cast<Vector<lanes>*>(p);
}
template <int lanes>
HEADROOM_KERNEL_BODY const Vector<lanes>& vector_at(const float* p) {
  return *reinterpret_cast<const Vector<lanes>*>(p);
}

// 16 with AVX-512, else 8. [any]
inline int vector_lanes() { return cpu_isa() == CpuIsa::avx512 ? 16 : 8; }

// c [rows, 2 * lanes] = or += a [rows, inner] b [inner, 2 * lanes]. b is a panel: its rows lie behind each other.
// Strides are in numbers. Sums go over `inner` in its order, whatever the number of rows, and are added to c when they
// are whole. c overlaps neither a nor b.
struct PanelProduct {
  int64_t rows, inner;
  const float* a;
  int64_t row_stride, inner_stride;
  const float* panel;
  float* c;
  int64_t c_stride;
  bool adds;  // to what c holds
};

// `rows` rows of c stay in registers while the panel passes by.
template <int lanes, int64_t rows>
HEADROOM_KERNEL_BODY void multiply_rows(const PanelProduct& p, int64_t first) {
  const float* const a = p.a + first * p.row_stride;
  float* const c = p.c + first * p.c_stride;
  const bool adds = p.adds;
  Vector<lanes> sum[rows][2] = {};
  const float* panel = p.panel;
  for (int64_t k = 0; k < p.inner; ++k, panel += 2 * lanes) {
    const Vector<lanes> left = vector_at<lanes>(panel), right = vector_at<lanes>(panel + lanes);
    for (int64_t r = 0; r < rows; ++r) {
      const float factor = a[r * p.row_stride + k * p.inner_stride];
      sum[r][0] += left * factor;
      sum[r][1] += right * factor;
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < 2; ++v) {
      Vector<lanes>& to = vector_at<lanes>(c + r * p.c_stride + v * lanes);
      to = adds ? to + sum[r][v] : sum[r][v];
    }
  }
}

template <int lanes>
HEADROOM_KERNEL_BODY void multiply_panel(const PanelProduct& p) {
  constexpr int64_t at_once = lanes / 2;  // 16 sums of 32 registers with AVX-512, else 8 of 16
  int64_t row = 0;
  for (; row + at_once <= p.rows; row += at_once) multiply_rows<lanes, at_once>(p, row);
  for (; row + 2 <= p.rows; row += 2) multiply_rows<lanes, 2>(p, row);
  if (row < p.rows) multiply_rows<lanes, 1>(p, row);
}

}  // namespace headroom::sdk
