// The whole network against the reference: flows, output, loss, gradients; names and shapes.
#include <gtest/gtest.h>

#include "golden_files.hpp"
#include "vrt.hpp"

namespace headroom {
namespace {

constexpr uint64_t kKey[] = {11};
const hr_call kOneClip{sizeof(hr_call), HR_EVAL, 0, 1, kKey, kDLCPU, 0, nullptr, 0};
const sdk::Call one_clip(&kOneClip, true, true, kRecomputed.data());

VrtShape tiny() {
  VrtShape shape;
  shape.depths = {4, 4, 4, 4, 4, 4, 4, 2, 2};
  shape.embed_dims = {16, 16, 16, 16, 16, 16, 16, 24, 24};
  shape.num_heads = {2, 2, 2, 2, 2, 2, 2, 2, 2};
  shape.indep_reconsts = {8};
  shape.mul_attn_ratio = 0.5;
  shape.deformable_groups = 4;
  return shape;
}

// Everything but SpyNet, whose weights are in a file of their own.
void load_network(Vrt& vrt, const Tensors& golden, const Tensors& spynet) {
  Tensors all = golden;
  for (const auto& [name, tensor] : spynet) all["w.spynet." + name] = tensor;
  load_into(vrt, all, "w.");
}

struct NetworkRun {
  Flows flows;
  at::Tensor y, loss;
  Tensors gradients;
};

NetworkRun run_network(const Tensors& golden, const Tensors& spynet, at::ScalarType dtype) {
  Vrt vrt(tiny());
  load_network(vrt, golden, spynet);
  vrt.to(dtype);
  const at::Tensor x = golden.at("x").to(dtype);
  NetworkRun run{vrt.flows(x), {}, {}, {}};
  WindowTables tables;
  run.y = vrt.forward({one_clip, tables}, x, run.flows, {});
  run.loss = ((run.y - golden.at("gt").to(dtype)).square() + 1e-9).sqrt().mean();
  run.loss.backward();
  for (const auto& item : vrt.named_parameters()) run.gradients[item.key()] = item.value().grad();
  return run;
}

TEST(SpikeVrtNetwork, MatchesTheReference) {
  GOLDEN_OR_SKIP(spynet, "d_spynet_weights.safetensors");
  GOLDEN_OR_SKIP(golden, "a_vrt_tiny.safetensors");
  GOLDEN_OR_SKIP(in_double, "a_vrt_tiny_float64.safetensors");
  const NetworkRun run = run_network(golden, spynet, at::kFloat);
  for (std::size_t level = 0; level < SpyNet::kUsedLevels; ++level) {
    expect_close(run.flows.backward[0][level], golden.at("flow_backward_l" + std::to_string(level)), "backward");
    expect_close(run.flows.forward[0][level], golden.at("flow_forward_l" + std::to_string(level)), "forward");
  }
  expect_close(run.y, golden.at("y"), "y", kOutput);
  expect_close(run.loss, golden.at("loss")[0], "loss", kOutput);
  for (const auto& [name, gradient] : in_double)
    expect_close(run.gradients.at(name.substr(5)), gradient, name, feeds_places(name) ? kPlaces : kGradient);
}

// Against the nn.Module of bench/peers in float64, which check_vrt.py holds against the reference, and against the
// reference's own float32 but for what goes through places.
TEST(SpikeVrtNetwork, GradientsMatchTheReferenceInDouble) {
  GOLDEN_OR_SKIP(spynet, "d_spynet_weights.safetensors");
  GOLDEN_OR_SKIP(golden, "a_vrt_tiny.safetensors");
  GOLDEN_OR_SKIP(in_double, "a_vrt_tiny_float64.safetensors");
  const NetworkRun run = run_network(golden, spynet, at::kDouble);
  int compared = 0;
  double squares = 0.0;
  for (const auto& [name, gradient] : run.gradients) {
    ASSERT_TRUE(gradient.defined()) << name;
    squares += gradient.square().sum().item<double>();
    const auto expected = golden.find("grad." + name);
    if (expected == golden.end()) continue;
    ++compared;
    expect_close(gradient, in_double.at("grad." + name), name + " in float64", 1e-9);
    if (!feeds_places(name)) expect_close(gradient, expected->second, name, kGradient);
  }
  EXPECT_EQ(compared, 19);
  EXPECT_NEAR(std::sqrt(squares), golden.at("grad_norm_all").item<double>(), 1e-3 * std::sqrt(squares));
}

// To find where a difference begins.
TEST(SpikeVrtNetwork, FirstFeatures) {
  GOLDEN_OR_SKIP(golden, "a_vrt_tiny.safetensors");
  GOLDEN_OR_SKIP(features, "a_vrt_tiny_acts.safetensors");
  Flows flows;
  flows.backward.emplace_back()[0] = golden.at("flow_backward_l0");
  flows.forward.emplace_back()[0] = golden.at("flow_forward_l0");
  const at::Tensor seen = Vrt::with_neighbours(golden.at("x"), flows).permute({0, 4, 1, 2, 3});
  expect_close(seen.narrow(2, 0, 2), features.at("act.conv_first_in_t0to1"), "beside its neighbours");
}

TEST(SpikeVrtNetwork, NamesAndShapesOfTheReference) {
  GOLDEN_OR_SKIP(golden, "a_vrt_tiny.safetensors");
  std::map<std::string, std::vector<int64_t>> expected, found;
  for (const auto& [name, tensor] : golden)
    if (name.starts_with("w.")) expected[name.substr(2)] = tensor.sizes().vec();
  const Vrt vrt(tiny());
  int64_t parameters = 0;
  for (const auto& item : vrt.named_parameters()) {
    parameters += item.value().numel();
    if (!item.key().starts_with("spynet.")) found[item.key()] = item.value().sizes().vec();
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(parameters, 1'901'275);
}

// spec 6: what each part of the deblurring network has.
TEST(SpikeVrtNetwork, TheDeblurringNetwork) {
  VrtShape shape;
  shape.depths = {8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 4};
  shape.embed_dims = {96, 96, 96, 96, 96, 96, 96, 120, 120, 120, 120};
  shape.num_heads = std::vector<int64_t>(11, 6);
  shape.indep_reconsts = {9, 10};
  const Vrt vrt(shape);
  std::map<std::string, int64_t> parts;
  int64_t parameters = 0;
  for (const auto& item : vrt.named_parameters()) {
    parts[item.key().substr(0, item.key().find('.'))] += item.value().numel();
    parameters += item.value().numel();
  }
  const std::map<std::string, int64_t> expected = {
      {"spynet", 1'440'300}, {"conv_first", 23'424}, {"stage1", 2'027'712}, {"stage2", 2'065'248},
      {"stage3", 2'065'248}, {"stage4", 2'065'248},  {"stage5", 2'029'968}, {"stage6", 2'029'968},
      {"stage7", 2'029'968}, {"stage8", 2'528'472},  {"norm", 240},         {"conv_after_body", 11'616},
      {"conv_last", 2'595}};
  EXPECT_EQ(parts, expected);
  EXPECT_EQ(parameters, 18'320'007);
  // 1,526 entries of the reference, without 72 index matrices and 42 position tables, which are computed.
  EXPECT_EQ(vrt.named_parameters().size() + vrt.named_buffers().size(), 1526u - 72u - 42u);
}

// spec 7: an even slope over all blocks.
TEST(SpikeVrtNetwork, RatesOfStochasticDepth) {
  VrtShape shape = tiny();
  EXPECT_EQ(shape.drop_path_of(0)[0], 0.0);
  EXPECT_NEAR(shape.drop_path_of(1)[0], 0.2 * 4 / 31, 1e-12);
  EXPECT_NEAR(shape.drop_path_of(8)[1], 0.2, 1e-12);
}

}  // namespace
}  // namespace headroom
