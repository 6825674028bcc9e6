// Optical flow, warping and deformable convolution against the reference, gradients too.
#include <gtest/gtest.h>

#include "alignment.hpp"
#include "deform_conv.hpp"
#include "golden_files.hpp"
#include "spynet.hpp"
#include "warp.hpp"
#include "warp_features.hpp"

namespace headroom {
namespace {

// A loss with another factor at every element.
at::Tensor ramp_like(const at::Tensor& x) { return at::linspace(-1, 1, x.numel()).view(x.sizes()); }

TEST(SpikeVrtWarp, MatchesTheReference) {
  GOLDEN_OR_SKIP(golden, "c_flow_warp.safetensors");
  const at::Tensor x = leaf(golden.at("x")), flow = leaf(golden.at("flow_nhw2").permute({0, 3, 1, 2}).contiguous());
  const at::Tensor moved = warp(x, flow);
  expect_close(moved, golden.at("bilinear_zeros"), "bilinear_zeros");
  (moved * ramp_like(moved)).sum().backward();
  expect_close(x.grad(), golden.at("grad_x"), "grad_x");
  expect_close(flow.grad().permute({0, 2, 3, 1}), golden.at("grad_flow"), "grad_flow");
  expect_close(warp(x, flow, Outside::border), golden.at("bilinear_border"), "bilinear_border");
  expect_close(warp_nearest4(x, flow), golden.at("nearest4"), "nearest4");
}

TEST(SpikeVrtWarp, FourNearestCoincideAtWholePixels) {
  const at::Tensor x = at::arange(12.0).view({1, 1, 3, 4}), flow = at::ones({1, 2, 3, 4});
  const at::Tensor four = warp_nearest4(x, flow);
  for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(four[0][i].equal(four[0][0]));
  EXPECT_EQ(four[0][0][0][0].item<float>(), 5.0F);
  EXPECT_EQ(four[0][0][2][0].item<float>(), 0.0F) << "below the image";
}

// Our own kernel against LibTorch's, to the edges and beyond; more channels than a thread takes at once.
TEST(SpikeVrtWarp, KernelMatchesGridSample) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(23);
  const at::Tensor x = torch::randn({2, 21, 9, 7}, generator, at::kDouble).requires_grad_(true),
                   flow = (torch::randn({2, 2, 9, 7}, generator, at::kDouble) * 3).requires_grad_(true);
  std::vector<std::vector<at::Tensor>> results;
  for (const auto way : {warp_features, +[](const at::Tensor&a, const at::Tensor&b) { return warp(a, b); }}) {
    const at::Tensor y = way(x, flow);
    results.push_back(torch::autograd::grad({(y * ramp_like(y)).sum()}, {x, flow}));
    results.back().push_back(y);
  }
  for (std::size_t i = 0; i < results[0].size(); ++i)
    expect_close(results[0][i], results[1][i], "tensor " + std::to_string(i), 1e-12);
  expect_close(warp_features(x.to(at::kFloat), flow.to(at::kFloat)), results[1].back(), "float32");
}

using Sampling = at::Tensor (*)(const TensorList&);

// The gradients of a ramp's product with operation(inputs), and the result.
TensorList gradients_of(Sampling operation, const TensorList& inputs, at::ScalarType dtype) {
  TensorList given;
  for (const at::Tensor& each : inputs) given.push_back(each.detach().to(dtype).requires_grad_(true));
  const at::Tensor y = operation(given);
  TensorList found = torch::autograd::grad({(y * ramp_like(y)).sum()}, given);
  found.push_back(y);
  return found;
}

void expect_float_as_double(Sampling operation, const TensorList& inputs) {
  const TensorList narrow = gradients_of(operation, inputs, at::kFloat),
                   wide = gradients_of(operation, inputs, at::kDouble);
  for (std::size_t i = 0; i < narrow.size(); ++i) expect_close(narrow[i], wide[i], "tensor " + std::to_string(i));
}

// Whole pixels, and a tenth to nine tenths: far from where a gradient jumps.
at::Tensor between_pixels(at::IntArrayRef shape, at::Generator& generator) {
  return at::rand(shape, generator, at::kDouble) * 0.8 + 0.1;
}
at::Tensor whole_pixels(at::IntArrayRef shape, at::Generator& generator) {
  return (at::randn(shape, generator, at::kDouble) * 3).round();
}

TEST(SpikeVrtWarp, KernelInFloat) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(31);
  const at::Tensor x = torch::randn({2, 21, 9, 7}, generator, at::kDouble),
                   flow = whole_pixels({2, 2, 9, 7}, generator) + between_pixels({2, 2, 9, 7}, generator);
  expect_float_as_double([](const TensorList& in) { return warp_features(in[0], in[1]); }, {x, flow});
}

// Flows in both precisions; gradients in float64, since in float32 a ReLU that is almost zero may be on either side.
TEST(SpikeVrtSpyNet, MatchesTheReference) {
  GOLDEN_OR_SKIP(weights, "d_spynet_weights.safetensors");
  GOLDEN_OR_SKIP(golden, "d_spynet.safetensors");
  for (const auto& [dtype, size] :
       {std::pair{at::kFloat, "64x96"}, {at::kFloat, "50x70"}, {at::kDouble, "50x70"}, {at::kDouble, "64x96"}}) {
    SpyNet spynet;
    load_into(spynet, weights, "");
    spynet.to(dtype);
    const at::Tensor reference = leaf(golden.at(std::string("ref") + size).to(dtype)),
                     support = golden.at(std::string("supp") + size).to(dtype);
    const SpyNet::Flow flows =
        spynet.forward(spynet.pyramid(reference), spynet.pyramid(support), reference.size(2), reference.size(3));
    at::Tensor loss = at::zeros({}, reference.options().requires_grad(false));
    for (std::size_t level = 0; level < flows.size(); ++level) {
      expect_close(flows[level], golden.at(c10::str("flow", size, "_l", level)), size);
      loss = loss + (flows[level] * ramp_like(flows[level])).mean();
    }
    if (dtype != at::kDouble || std::string_view(size) != "64x96") continue;
    loss.backward();
    const auto parameters = spynet.named_parameters();
    expect_close(reference.grad(), golden.at("grad_ref64x96"), "grad_ref", kGradient);
    expect_close(parameters["basic_module.5.basic_module.8.weight"].grad(), golden.at("grad_w5_8_weight"), "w5",
                 kGradient);
    expect_close(parameters["basic_module.0.basic_module.0.bias"].grad(), golden.at("grad_w0_0_bias"), "w0", kGradient);
  }
}

using DeformConv = at::Tensor (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                  const at::Tensor&);

void expect_deform_conv(const std::string& name, DeformConv convolve) {
  GOLDEN_OR_SKIP(golden, "e_deform_conv.safetensors");
  const auto input = [&](const char* part) { return leaf(golden.at(name + part)); };
  const at::Tensor x = input(".x"), offset = input(".offset"), mask = input(".mask"), weight = input(".weight"),
                   bias = input(".bias");
  const at::Tensor y = convolve(x, offset, mask, weight, bias);
  expect_close(y, golden.at(name + ".y"), "y");
  (y * ramp_like(y)).sum().backward();
  expect_close(x.grad(), golden.at(name + ".grad_x"), "grad_x");
  expect_close(offset.grad(), golden.at(name + ".grad_offset"), "grad_offset");
  expect_close(mask.grad(), golden.at(name + ".grad_mask"), "grad_mask");
  expect_close(weight.grad(), golden.at(name + ".grad_weight"), "grad_weight");
  expect_close(bias.grad(), golden.at(name + ".grad_bias"), "grad_bias");
}

TEST(SpikeVrtDeformConv, OneGroup) { expect_deform_conv("dg1", deform_conv_gather); }
TEST(SpikeVrtDeformConv, FourGroupsOfTwoWeightParts) { expect_deform_conv("dg4_wg2", deform_conv_gather); }

// Our own kernels against LibTorch's operations in float64: inside and far outside, with one source and more.
TEST(SpikeVrtDeformConv, KernelsMatchTheGather) {
  for (const int64_t sources : {1, 3}) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(17);
    const auto drawn = [&](at::IntArrayRef shape, double scale) {
      return (torch::randn(shape, generator, at::kDouble) * scale).requires_grad_(true);
    };
    const at::Tensor x = drawn({2, 12 * sources, 9, 7}, 1.0), raw = drawn({2, 27 * 6, 9, 7}, 1.0),
                     flow = drawn({2, 2 * sources, 9, 7}, 3.0), weight = drawn({12, 12, 3, 3}, 0.3),
                     bias = drawn({12}, 1.0);
    std::vector<std::vector<at::Tensor>> results;
    for (const auto convolve : {deform_conv_along, deform_conv_along_gather}) {
      const at::Tensor y = convolve(x, raw, flow, weight, bias, 2.5);
      const auto found = torch::autograd::grad({(y * ramp_like(y)).sum()}, {x, raw, flow, weight, bias});
      results.push_back(found);
      results.back().push_back(y);
    }
    for (std::size_t i = 0; i < results[0].size(); ++i)
      expect_close(results[0][i], results[1][i], "argument " + std::to_string(i), 1e-12);
    const at::Tensor single = deform_conv_along(x.to(at::kFloat), raw.to(at::kFloat), flow.to(at::kFloat),
                                                weight.to(at::kFloat), bias.to(at::kFloat), 2.5);
    expect_close(single, results[1].back(), "float32");
  }
}

TEST(SpikeVrtDeformConv, KernelsInFloat) {
  constexpr int64_t groups = 6, sources = 3;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(37);
  const auto drawn = [&](at::IntArrayRef shape) { return torch::randn(shape, generator, at::kDouble); };
  const at::Tensor beside = between_pixels({2, 18 * groups, 9, 7}, generator) / 2.5,
                   raw = at::cat({beside.atanh(), drawn({2, 9 * groups, 9, 7})}, 1);
  expect_float_as_double([](const TensorList& in) { return deform_conv_along(in[0], in[1], in[2], in[3], in[4], 2.5); },
                         {drawn({2, 12 * sources, 9, 7}), raw, whole_pixels({2, 2 * sources, 9, 7}, generator),
                          drawn({12, 12, 3, 3}), drawn({12})});
}

// Offsets from the features themselves; 2, 4 and 6 frames: as many weight parts as neighbours.
TEST(SpikeVrtAlignment, MatchesTheReference) {
  GOLDEN_OR_SKIP(golden, "e_deform_conv.safetensors");
  for (const int64_t neighbours : {1, 2, 3}) {
    const std::string name = "pack" + std::to_string(2 * neighbours);
    Alignment alignment(12, {neighbours, neighbours == 3 ? 6 : 4, 2.5});
    load_into(alignment, golden, name + ".w.");
    const Sources sources{golden.at(name + ".x").chunk(neighbours, 1), golden.at(name + ".flows").chunk(neighbours, 1)};
    const at::Tensor y = align(sources, golden.at(name + ".current"), alignment.parameter_list(), alignment.shape());
    expect_close(y, golden.at(name + ".y"), name);
  }
}

}  // namespace
}  // namespace headroom
