#include "small_product.hpp"

#include <algorithm>
#include <cstring>

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {
namespace {

// GCC ignores these attributes where the number of lanes is a template's parameter.
template <int lanes>
struct VectorOf;
template <>
struct VectorOf<8> {
  using type = float __attribute__((vector_size(32), aligned(4), may_alias));
};
template <>
struct VectorOf<16> {
  using type = float __attribute__((vector_size(64), aligned(4), may_alias));
};
template <int lanes>
using Vector = typename VectorOf<lanes>::type;

template <int lanes>
HEADROOM_KERNEL_BODY Vector<lanes>& at(float* p) {
  return *reinterpret_cast<Vector<lanes>*>(p);
}
template <int lanes>
HEADROOM_KERNEL_BODY const Vector<lanes>& at(const float* p) {
  return *reinterpret_cast<const Vector<lanes>*>(p);
}

int64_t lanes_here() { return sdk::cpu_isa() == sdk::CpuIsa::avx512 ? 16 : 8; }
int64_t panel_columns() { return 2 * lanes_here(); }

// Of one panel: `rows` rows of c stay in registers while the panel passes by. c's rows are `stride` apart.
template <int lanes, int64_t rows>
HEADROOM_KERNEL_BODY void tile(const SmallProduct& p, int64_t row, const float* panel, float* c, int64_t stride) {
  const float* const a = p.a + row * p.a_stride;
  Vector<lanes> sum[rows][2];
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < 2; ++v) sum[r][v] = at<lanes>(c + r * stride + v * lanes);
  }
  for (int64_t k = 0; k < p.inner; ++k, panel += 2 * lanes) {
    const Vector<lanes> first = at<lanes>(panel), second = at<lanes>(panel + lanes);
    for (int64_t r = 0; r < rows; ++r) {
      const float factor = a[r * p.a_stride + k];
      sum[r][0] += first * factor;
      sum[r][1] += second * factor;
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < 2; ++v) at<lanes>(c + r * stride + v * lanes) = sum[r][v];
  }
}

// `width`: the columns of c in this panel.
template <int lanes, int64_t rows>
HEADROOM_KERNEL_BODY void tile_of(const SmallProduct& p, int64_t row, const float* panel, float* c, int64_t width) {
  if (width == 2 * lanes) return tile<lanes, rows>(p, row, panel, c, p.c_stride);
  float whole[rows * 2 * lanes] = {};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < width; ++i) whole[r * 2 * lanes + i] = c[r * p.c_stride + i];
  tile<lanes, rows>(p, row, panel, whole, 2 * lanes);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < width; ++i) c[r * p.c_stride + i] = whole[r * 2 * lanes + i];
}

// As many rows at once as the registers hold sums for: 16 of 32 with AVX-512, else 8 of 16.
template <int lanes>
struct Product {
  static HEADROOM_KERNEL_BODY void run(const SmallProduct* p, int64_t first_panel, int64_t last_panel) {
    constexpr int64_t rows_at_once = lanes / 2, width = 2 * lanes;
    for (int64_t i = first_panel; i < last_panel; ++i) {
      const float* const panel = p->panels + i * p->inner * width;
      const int64_t columns = std::min(width, p->columns - i * width);
      float* const c = p->c + i * width;
      int64_t row = 0;
      for (; row + rows_at_once <= p->rows; row += rows_at_once)
        tile_of<lanes, rows_at_once>(*p, row, panel, c + row * p->c_stride, columns);
      for (; row + 2 <= p->rows; row += 2) tile_of<lanes, 2>(*p, row, panel, c + row * p->c_stride, columns);
      if (row < p->rows) tile_of<lanes, 1>(*p, row, panel, c + row * p->c_stride, columns);
    }
  }
};

constexpr int64_t line = 16;  // numbers of a cache line

// From columns that lie behind each other: a cache line of each at a time.
void turn(const Matrix& matrix, int64_t first_column, int64_t width, float* panel) {
  const int64_t across = panel_columns();
  for (int64_t row = 0; row < matrix.inner; row += line) {
    const int64_t rows = std::min(line, matrix.inner - row);
    for (int64_t i = 0; i < width; ++i) {
      const float* const from = matrix.values + (first_column + i) * matrix.column_stride + row;
      for (int64_t k = 0; k < rows; ++k) panel[(row + k) * across + i] = from[k];
    }
  }
}

}  // namespace

int64_t panel_count(int64_t columns) { return (columns + panel_columns() - 1) / panel_columns(); }
int64_t panel_elements(int64_t inner) { return inner * panel_columns(); }

void lay_out(const Matrix& matrix, int64_t first, int64_t last, float* panels) {
  const int64_t across = panel_columns();
  for (int64_t i = first; i < last; ++i) {
    float* const panel = panels + i * panel_elements(matrix.inner);
    const int64_t column = i * across, width = std::min(across, matrix.columns - column);
    if (width < across) std::memset(panel, 0, static_cast<size_t>(panel_elements(matrix.inner)) * sizeof(float));
    if (matrix.row_stride == 1) {
      turn(matrix, column, width, panel);
      continue;
    }
    for (int64_t row = 0; row < matrix.inner; ++row) {
      const float* const from = matrix.values + row * matrix.row_stride + column * matrix.column_stride;
      for (int64_t k = 0; k < width; ++k) panel[row * across + k] = from[k * matrix.column_stride];
    }
  }
}

void add_product(const SmallProduct& product, int64_t first, int64_t last) {
  if (lanes_here() == 16) return sdk::run_kernel<Product<16>>(&product, first, last);
  sdk::run_kernel<Product<8>>(&product, first, last);
}

}  // namespace headroom
