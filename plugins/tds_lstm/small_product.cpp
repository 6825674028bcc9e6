#include "small_product.hpp"

#include <algorithm>
#include <cstring>

#include "headroom/sdk/vectors.hpp"

namespace headroom {
namespace {

int64_t panel_columns() { return 2 * sdk::vector_lanes(); }

// c has `columns` of the panel's alone.
template <int lanes>
HEADROOM_KERNEL_BODY void add_to_part(sdk::PanelProduct product, int64_t columns) {
  constexpr int64_t width = 2 * lanes, at_once = lanes / 2;
  float whole[at_once * width];
  const int64_t rows = product.rows;
  for (int64_t row = 0; row < rows; row += at_once) {
    sdk::PanelProduct part = product;
    part.rows = std::min(at_once, rows - row);
    part.a += row * product.row_stride;
    part.c = whole;
    part.c_stride = width;
    part.adds = false;
    sdk::multiply_panel<lanes>(part);
    for (int64_t r = 0; r < part.rows; ++r) {
      for (int64_t i = 0; i < columns; ++i) product.c[(row + r) * product.c_stride + i] += whole[r * width + i];
    }
  }
}

template <int lanes>
struct Product {
  static HEADROOM_KERNEL_BODY void run(const SmallProduct* p, int64_t first_panel, int64_t last_panel) {
    constexpr int64_t width = 2 * lanes;
    for (int64_t i = first_panel; i < last_panel; ++i) {
      const sdk::PanelProduct product{p->rows,          p->inner,          p->a,
                                      p->a_stride,      p->a_inner_stride, p->panels + i * p->inner * width,
                                      p->c + i * width, p->c_stride,       /*adds=*/true};
      if (p->columns - i * width >= width) {
        sdk::multiply_panel<lanes>(product);
      } else {
        add_to_part<lanes>(product, p->columns - i * width);
      }
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
  if (sdk::vector_lanes() == 16) return sdk::run_kernel<Product<16>>(&product, first, last);
  sdk::run_kernel<Product<8>>(&product, first, last);
}

}  // namespace headroom
