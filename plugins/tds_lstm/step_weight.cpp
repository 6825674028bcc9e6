#include "step_weight.hpp"

#include <ATen/Parallel.h>
#include <algorithm>

#include "small_product.hpp"

namespace headroom {
namespace {

constexpr int64_t few_rows = 128;  // with more, BLAS is as fast
// A thread is not worth waking for fewer numbers to copy, or multiplications.
constexpr int64_t copies_at_once = 1 << 16, products_at_once = 1 << 20;

int64_t grain(int64_t at_once, int64_t of_a_panel) { return std::max<int64_t>(1, at_once / of_a_panel); }

}  // namespace

StepWeight::StepWeight(const at::Tensor& matrix, int64_t rows) : matrix_(matrix) {
  if (!matrix.is_cpu() || matrix.scalar_type() != at::kFloat || rows > few_rows) return;
  const Matrix from{matrix.size(0), matrix.size(1), matrix.const_data_ptr<float>(), matrix.stride(0), matrix.stride(1)};
  const int64_t panels = panel_count(from.columns), elements = panel_elements(from.inner);
  panels_ = at::empty({panels, elements}, at::kFloat);
  float* const to = panels_.mutable_data_ptr<float>();
  at::parallel_for(0, panels, grain(copies_at_once, elements),
                   [&](int64_t first, int64_t last) { lay_out(from, first, last, to); });
}

void StepWeight::add_product(const at::Tensor& c, const at::Tensor& a) const {
  if (!panels_.defined()) {
    c.addmm_(a, matrix_);
    return;
  }
  const SmallProduct product{a.size(0),
                             a.size(1),
                             matrix_.size(1),
                             a.const_data_ptr<float>(),
                             a.stride(0),
                             panels_.const_data_ptr<float>(),
                             c.mutable_data_ptr<float>(),
                             c.stride(0)};
  at::parallel_for(0, panels_.size(0), grain(products_at_once, product.rows * panels_.size(1)),
                   [&](int64_t first, int64_t last) { headroom::add_product(product, first, last); });
}

}  // namespace headroom
