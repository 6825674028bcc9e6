#include "encoder.hpp"

#include <gtest/gtest.h>

#include "headroom/sdk/autocast.hpp"

namespace headroom {
namespace {

// As on a GPU, and on a CPU whose convolutions are computed in float32: what comes in is wider than what a linear layer
// gives.
TEST(FullyConnectedBlock, UnderAutocastTheResidualKeepsItsPrecision) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  FullyConnectedBlock block(8);
  const at::Tensor x = torch::randn({2, 3, 8});
  const sdk::AutocastScope narrow({at::kCPU, true, at::kBFloat16});
  const at::Tensor y = block->fc_block->forward(x);
  ASSERT_EQ(y.scalar_type(), at::kBFloat16);
  const at::Tensor expected = block->layer_norm->forward(x + y), found = block->forward(x);
  ASSERT_EQ(found.scalar_type(), expected.scalar_type());
  EXPECT_TRUE(found.equal(expected));
}

}  // namespace
}  // namespace headroom
