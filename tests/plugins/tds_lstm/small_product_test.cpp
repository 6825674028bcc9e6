// Products with few rows against LibTorch's in float64, over all remainders of registers.
#include "small_product.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace headroom {
namespace {

// c += a b, over all of b's panels.
void multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  const int64_t inner = b.size(0), columns = b.size(1), panels = panel_count(columns);
  const at::Tensor laid_out = torch::full({panels, panel_elements(inner)}, NAN);
  lay_out({inner, columns, b.const_data_ptr<float>(), b.stride(0), b.stride(1)}, 0, panels,
          laid_out.mutable_data_ptr<float>());
  add_product({a.size(0), inner, columns, a.const_data_ptr<float>(), a.stride(0), laid_out.const_data_ptr<float>(),
               c.mutable_data_ptr<float>(), c.stride(0)},
              0, panels);
}

// Matrices are parts of wider ones, whose other columns stay.
TEST(SmallProduct, AddsTheProductForEveryNumberOfRowsAndColumns) {
  torch::manual_seed(1);
  for (const int64_t inner : {1, 16, 20, 129}) {
    for (const int64_t rows : {1, 2, 3, 5, 7, 8, 9, 15, 16, 21}) {
      for (const int64_t columns : {1, 3, 4, 7, 8, 15, 16, 20, 31, 32, 33, 63, 100}) {
        for (const bool turned : {false, true}) {
          const at::Tensor
              a = torch::randn({rows, inner + 3}).narrow(1, 2, inner),
              b = turned ? torch::randn({columns + 5, inner + 1}).t().narrow(0, 1, inner).narrow(1, 4, columns)
                         : torch::randn({inner, columns + 5}).narrow(1, 4, columns),
              c = torch::randn({rows, columns + 2}), before = c.clone();
          multiply(a, b, c);
          const at::Tensor expected =
              before.narrow(1, 0, columns).to(at::kDouble) + a.to(at::kDouble).mm(b.to(at::kDouble));
          ASSERT_LE((c.narrow(1, 0, columns) - expected).abs().max().item<double>(), 5e-5)
              << rows << " x " << inner << " by " << inner << " x " << columns << (turned ? " turned" : "");
          ASSERT_TRUE(c.narrow(1, columns, 2).equal(before.narrow(1, columns, 2)));
        }
      }
    }
  }
}

// A sample's result does not depend on which others stand beside it.
TEST(SmallProduct, ARowIsTheSameAmongAnyNumberOfRows) {
  torch::manual_seed(2);
  const at::Tensor a = torch::randn({11, 70}), b = torch::randn({70, 52}), all = torch::zeros({11, 52});
  multiply(a, b, all);
  for (int64_t row = 0; row < 11; ++row) {
    const at::Tensor alone = torch::zeros({1, 52});
    multiply(a.narrow(0, row, 1), b, alone);
    EXPECT_TRUE(alone[0].equal(all[row])) << row;
  }
}

}  // namespace
}  // namespace headroom
