// TMSA blocks against the reference: windows, padding, shifts, masks, sliced relative positions.
#include <gtest/gtest.h>
#include <limits>

#include "golden_files.hpp"
#include "tmsa.hpp"
#include "window_attention.hpp"

namespace headroom {
namespace {

constexpr uint64_t kKeys[] = {11, 12};
constexpr hr_call evaluation(uint64_t samples) {
  return {sizeof(hr_call), HR_EVAL, 0, samples, kKeys, kDLCPU, 0, nullptr, 0};
}

struct BlockCase {
  std::string name;
  BlockShape shape;
  Extent used_window, used_shift;
};

BlockCase block_case(const std::string& name) {
  if (name == "mut_shift") return {name, {16, 32, {2, {2, 8, 8}, {1, 4, 4}, true}, 0.0}, {2, 8, 8}, {1, 4, 4}};
  if (name == "mut_noshift") return {name, {16, 32, {2, {2, 8, 8}, {0, 0, 0}, true}, 0.0}, {2, 8, 8}, {0, 0, 0}};
  if (name == "self_shift3d") return {name, {12, 24, {3, {3, 8, 8}, {1, 4, 4}, false}, 0.0}, {3, 8, 8}, {1, 4, 0}};
  return {name, {12, 24, {3, {6, 8, 8}, {3, 4, 4}, false}, 0.0}, {5, 6, 8}, {0, 0, 4}};
}

class SpikeVrtBlock : public testing::TestWithParam<std::string> {};

TEST_P(SpikeVrtBlock, MatchesTheReference) {
  GOLDEN_OR_SKIP(golden, "b_tmsa.safetensors");
  const BlockCase of = block_case(GetParam());
  Tmsa block(of.shape);
  load_into(block, golden, of.name + ".w.");
  const at::Tensor x = leaf(golden.at(of.name + ".x"));
  const hr_call native = evaluation(static_cast<uint64_t>(x.size(0)));
  WindowTables tables;
  const sdk::Call call(&native, true, true, kRecomputed.data());
  expect_close(attention_branch(x, block.attention_parameters(), of.shape.attention, tables),
               golden.at(of.name + ".part1"), "attention branch");
  const at::Tensor y = block.forward({call, tables}, x, 1);
  expect_close(y, golden.at(of.name + ".y"), "y");
  (y * at::linspace(-1, 1, y.numel()).view(y.sizes())).sum().backward();
  expect_close(x.grad(), golden.at(of.name + ".grad_x"), "grad_x");
  const auto parameters = block.named_parameters();
  const std::map<std::string, std::string> names = {{"grad_rpb", "attn.relative_position_bias_table"},
                                                    {"grad_qkv_self", "attn.qkv_self.weight"},
                                                    {"grad_qkv_mut", "attn.qkv_mut.weight"},
                                                    {"grad_proj_b", "attn.proj.bias"},
                                                    {"grad_fc12", "mlp.fc12.weight"}};
  int compared = 0;
  for (const auto& [file, name] : names) {
    const auto expected = golden.find(of.name + '.' + file);
    if (expected == golden.end()) continue;
    expect_close(parameters[name].grad(), expected->second, name, kGradient);
    ++compared;
  }
  EXPECT_EQ(compared, of.shape.attention.mutual ? 5 : 4);
}

TEST_P(SpikeVrtBlock, CutsAndMasksAsTheReference) {
  GOLDEN_OR_SKIP(golden, "b_tmsa.safetensors");
  const BlockCase of = block_case(GetParam());
  const auto& x = golden.at(of.name + ".x");
  const WindowCut cut =
      cut_windows({x.size(1), x.size(2), x.size(3)}, of.shape.attention.window, of.shape.attention.shift);
  EXPECT_EQ(cut.window, of.used_window);
  const at::Tensor expected = golden.at(of.name + ".mask");
  if (of.used_shift == Extent{}) {
    EXPECT_FALSE(cut.labels.defined());
    EXPECT_EQ(expected.sum().item<int64_t>(), 0);
  } else {
    EXPECT_TRUE(attention_mask(cut.labels, at::kFloat).equal(expected.to(at::kFloat) * -100.0));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SpikeVrtBlock,
                         testing::Values("mut_shift", "mut_noshift", "self_shift3d", "self_small"),
                         [](const auto& test) { return test.param; });

TEST(SpikeVrtWindow, TablesOfPositions) {
  GOLDEN_OR_SKIP(golden, "b_tmsa.safetensors");
  EXPECT_TRUE(
      relative_position_index({2, 8, 8}, 128).equal(golden.at("mut_shift.relative_position_index").to(at::kLong)));
  expect_close(position_bias(8, 8, 16).unsqueeze(0), golden.at("mut_shift.position_bias"), "position_bias");
}

// Our own kernel against LibTorch's operations: token counts that fill no vector, masks, pairs of windows.
TEST(SpikeVrtWindow, KernelMatchesThePlainOperations) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(19);
  for (const auto& [tokens, width, partners] :
       {std::tuple{45, 5, false}, {64, 8, true}, {18, 20, true}, {32, 16, false}}) {
    const at::Tensor qkv = torch::randn({6, tokens, 3, 2, width}, generator).requires_grad_(true),
                     bias = torch::randn({2, tokens, tokens}, generator).requires_grad_(true),
                     labels = torch::randint(0, 3, {partners ? 2 : 3, tokens}, generator, at::kLong);
    for (const bool plain : {true, false}) {
      const at::Tensor added = plain ? at::Tensor() : bias, apart = plain ? at::Tensor() : labels;
      std::vector<std::vector<at::Tensor>> results;
      for (const auto way : {attend, attend_plainly}) {
        const at::Tensor y = way(qkv, added, apart, partners);
        std::vector<at::Tensor> wanted = {qkv};
        if (!plain) wanted.push_back(bias);
        results.push_back(torch::autograd::grad({(y * at::linspace(-1, 1, y.numel()).view(y.sizes())).sum()}, wanted));
        results.back().push_back(y);
      }
      for (std::size_t i = 0; i < results[0].size(); ++i)
        expect_close(results[0][i], results[1][i], "tensor " + std::to_string(i) + " of " + std::to_string(tokens));
    }
  }
}

// A key that is no number is seen in every output of its window, and in no other's.
TEST(SpikeVrtWindow, WhatIsNotANumberStays) {
  const at::Tensor qkv = torch::randn({2, 18, 3, 2, 8});
  qkv[0][7].select(0, 1).fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor y = attend(qkv, {}, {}, false);
  EXPECT_TRUE(y[0].isnan().all().item<bool>());
  EXPECT_TRUE(y[1].isfinite().all().item<bool>());
}

// Tokens out and in again are the same tokens, whatever was padded and moved.
TEST(SpikeVrtWindow, ThereAndBack) {
  const WindowCut cut = cut_windows({5, 20, 12}, {2, 8, 8}, {1, 4, 4});
  const at::Tensor x = leaf(at::arange(2.0 * 5 * 20 * 12 * 3).view({2, 5 * 20 * 12, 3}));
  const at::Tensor taken = take_rows(x, cut.order);
  EXPECT_EQ(taken.size(1), cut.windows * cut.tokens);
  EXPECT_EQ((taken.sum() - x.sum()).item<float>(), 0.0F);
  const at::Tensor back = put_back_rows(taken, cut.order);
  EXPECT_TRUE(back.equal(x));
  back.mul(2).sum().backward();
  EXPECT_TRUE(x.grad().eq(2).all().item<bool>());
}

}  // namespace
}  // namespace headroom
