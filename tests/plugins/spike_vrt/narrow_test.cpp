// Our own kernels under mixed precision: given narrow numbers they give what the same numbers give in float32.
#include <functional>
#include <gtest/gtest.h>

#include "deform_conv.hpp"
#include "golden_files.hpp"
#include "warp_features.hpp"
#include "window_attention.hpp"

namespace headroom {
namespace {

using Inputs = std::vector<at::Tensor>;
using Operation = std::function<at::Tensor(const Inputs&)>;

// Of `inputs`, float32 leaves, the first `narrow` arrive as `dtype`. The result last.
Inputs results(const Operation& operation, const Inputs& inputs, std::size_t narrow, at::ScalarType dtype) {
  Inputs given;
  for (std::size_t i = 0; i < inputs.size(); ++i) given.push_back(i < narrow ? inputs[i].to(dtype) : inputs[i]);
  const at::Tensor y = operation(given);
  const at::Tensor ramp = at::linspace(-1, 1, y.numel()).view(y.sizes());
  Inputs found = torch::autograd::grad({(y * ramp).sum()}, inputs);
  found.push_back(y.to(at::kFloat));
  return found;
}

void expect_narrow_to_work(const Operation& operation, const std::vector<std::vector<int64_t>>& shapes,
                           std::size_t narrow) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(29);
  for (const auto& [dtype, limit] : {std::pair{at::kBFloat16, 2e-2}, std::pair{at::kHalf, 3e-3}}) {
    Inputs inputs;
    for (const auto& shape : shapes)
      inputs.push_back(torch::randn(shape, generator).to(dtype).to(at::kFloat).requires_grad_(true));
    const Inputs mixed = results(operation, inputs, narrow, dtype), exact = results(operation, inputs, 0, dtype);
    for (std::size_t i = 0; i < mixed.size(); ++i)
      expect_close(mixed[i], exact[i], c10::str(dtype, ", tensor ", i), limit);
    Inputs first_narrow = inputs;
    first_narrow[0] = first_narrow[0].to(dtype);
    EXPECT_EQ(operation(first_narrow).scalar_type(), dtype);
  }
}

TEST(SpikeVrtNarrow, WarpFeatures) {
  expect_narrow_to_work([](const Inputs& in) { return warp_features(in[0], in[1]); }, {{2, 21, 9, 7}, {2, 2, 9, 7}}, 1);
}

TEST(SpikeVrtNarrow, DeformConv) {
  expect_narrow_to_work([](const Inputs& in) { return deform_conv_along(in[0], in[1], in[2], in[3], in[4], 2.5); },
                        {{2, 24, 9, 7}, {2, 27 * 4, 9, 7}, {2, 4, 9, 7}, {12, 12, 3, 3}, {12}}, 2);
}

TEST(SpikeVrtNarrow, WindowAttention) {
  expect_narrow_to_work([](const Inputs& in) { return attend(in[0], in[1], {}, /*partners=*/true); },
                        {{6, 18, 3, 2, 5}, {2, 18, 18}}, 1);
}

}  // namespace
}  // namespace headroom
