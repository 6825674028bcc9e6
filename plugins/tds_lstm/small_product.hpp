// Products of a matrix with few rows and a large one, as every step of a roll-out has them, for several instruction
// sets (sdk/cpu_kernel.hpp). Torch-free. The large matrix is laid out once, in panels of a few columns that are read
// from one end to the other. BLAS libraries do that for each product, which takes as long as one of 16 rows.
#pragma once

#include <cstdint>

namespace headroom {

// A matrix [inner, columns] as panels: each has the same number of columns, the last one filled up with zeros, and lies
// row by row. The layout depends on the processor.
int64_t panel_count(int64_t columns);
int64_t panel_elements(int64_t inner);

struct Matrix {
  int64_t inner, columns;
  const float* values;
  int64_t row_stride, column_stride;
};

// Panels [first, last) of `matrix`; `panels` are all of them. [any]
void lay_out(const Matrix& matrix, int64_t first, int64_t last, float* panels);

// c [rows, columns] += a [rows, inner] b, of the columns in b's panels [first, last). Rows of a may overlap, those of c
// may not. Sums over `inner` in its order, whatever the number of rows. [any]
struct SmallProduct {
  int64_t rows, inner, columns;
  const float* a;
  int64_t a_stride;
  const float* panels;  // all of b's
  float* c;
  int64_t c_stride;
  int64_t a_inner_stride = 1;
};
void add_product(const SmallProduct& product, int64_t first, int64_t last);

}  // namespace headroom
