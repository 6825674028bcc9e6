// The parts of the network against the reference: backbone stages, position tensors, the masked encoder, the
// transformer in both orders of normalisation.
#include <gtest/gtest.h>

#include "backbone.hpp"
#include "golden_files.hpp"
#include "position.hpp"
#include "transformer.hpp"

namespace headroom {
namespace {

constexpr uint64_t kKeys[] = {11, 12, 13};
const hr_call kEvaluation{sizeof(hr_call), HR_EVAL, 0, 3, kKeys, kDLCPU, 0, nullptr, 0};
const hr_call kTraining{sizeof(hr_call), HR_TRAIN, 0, 3, kKeys, kDLCPU, 0, nullptr, 0};
const sdk::Call evaluation(&kEvaluation), training(&kTraining);
const Dropout off(evaluation, 0.0, 1), on(training, 0.1, 1);

void load_into(torch::nn::Module& module, const Tensors& golden, const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) item.value().copy_(golden.at(prefix + item.key()));
  for (auto& item : module.named_buffers()) item.value().copy_(golden.at(prefix + item.key()));
}

TEST(ActPolicyLayers, BackboneStages) {
  GOLDEN_OR_SKIP(golden, "c_backbone_narrow.safetensors");
  Backbone backbone({8, 16, 32, 64});
  load_into(backbone, golden, "w.backbones.0.0.body.");
  for (const std::string size : {"64x96", "61x83"}) {
    const std::vector<at::Tensor> stages = backbone.stages(golden.at("in." + size + ".image_norm"));
    const std::vector<std::string> names = {"maxpool", "layer1", "layer2", "layer3", "layer4"};
    for (std::size_t i = 0; i < names.size(); ++i)
      expect_close(stages[i], golden.at("out." + size + "." + names[i]), size + ' ' + names[i]);
  }
}

TEST(ActPolicyLayers, Positions) {
  GOLDEN_OR_SKIP(golden, "e_position.safetensors");
  const auto map = [](int64_t height, int64_t width, int64_t per_axis) {
    return sine_map(height, width, per_axis).unsqueeze(0);
  };
  // Sines of up to 2 * pi, in float32: other vector libraries differ in the last digits.
  expect_close(map(15, 20, 256), golden.at("sine.15x20.n256"), "15x20", 1e-6, 0.0);
  expect_close(map(4, 5, 16), golden.at("sine.4x5.n16"), "4x5", 1e-6, 0.0);
  expect_close(map(2, 3, 16), golden.at("sine.2x3.n16"), "2x3", 1e-6, 0.0);
  expect_close(map(1, 1, 16), golden.at("sine.1x1.n16"), "1x1", 1e-6, 0.0);
  expect_close(sine_table(102, 512), golden.at("table.102x512"), "102x512", 1e-7, 0.0);
  expect_close(sine_table(22, 512), golden.at("table.22x512"), "22x512", 1e-7, 0.0);
  expect_close(sine_table(7, 32), golden.at("table.7x32"), "7x32", 1e-7, 0.0);
}

// The reference is sequence first.
TEST(ActPolicyLayers, MaskedEncoder) {
  GOLDEN_OR_SKIP(golden, "d_cvae_encoder_masked.safetensors");
  Encoder encoder({32, 8, 64, /*pre_norm=*/false, Init::uniform}, 2);
  load_into(encoder, golden, "w.");
  const at::Tensor x = golden.at("in.x").transpose(0, 1).contiguous(), position = golden.at("in.pos").transpose(0, 1);
  const at::Tensor attended = golden.at("in.key_padding_mask").eq(0);
  const at::Tensor y = encoder.forward(off, x, position, attended);
  expect_close(y.transpose(0, 1), golden.at("out.y"), "y");
  expect_close(encoder.first_token(off, x, position, attended), golden.at("out.y")[0], "the first token alone");
}

// What dropout takes the other path for must be the same attention: with p next to nothing, nothing is dropped.
TEST(ActPolicyLayers, AttentionWithDropoutIsTheSameAttention) {
  GOLDEN_OR_SKIP(golden, "d_cvae_encoder_masked.safetensors");
  Encoder encoder({32, 8, 64, /*pre_norm=*/false, Init::uniform}, 2);
  load_into(encoder, golden, "w.");
  const Dropout hardly(training, 1e-12, 1);
  ASSERT_TRUE(hardly.active());
  const at::Tensor y = encoder.forward(hardly, golden.at("in.x").transpose(0, 1).contiguous(),
                                       golden.at("in.pos").transpose(0, 1), golden.at("in.key_padding_mask").eq(0));
  expect_close(y.transpose(0, 1), golden.at("out.y"), "y");
}

class TransformerCase : public testing::TestWithParam<std::string> {};

TEST_P(TransformerCase, EveryLayerAndTheGradients) {
  GOLDEN_OR_SKIP(golden, "d_transformer_" + GetParam() + ".safetensors");
  Transformer transformer({32, 8, 64, GetParam() == "pre", Init::xavier}, 2, 3);
  load_into(transformer, golden, "w.");
  const auto input = [&](const std::string& name) { return golden.at("in." + name).clone().requires_grad_(true); };
  const at::Tensor src = input("src"), latent = input("latent"), proprio = input("proprio"), query = input("query"),
                   addpos = input("addpos"), pos = input("pos");
  const at::Tensor tokens = at::cat({latent.unsqueeze(1), proprio.unsqueeze(1), src.flatten(2).transpose(1, 2)}, 1);
  const at::Tensor position = at::cat({addpos, pos.flatten(2).transpose(1, 2).squeeze(0)});
  for (int64_t depth = 1; depth <= 3; ++depth) {
    expect_close(transformer.forward(off, tokens, position, query, depth), golden.at("out.hs")[depth - 1],
                 "layer " + std::to_string(depth));
  }
  (transformer.forward(off, tokens, position, query, 1) * golden.at("in.R")).sum().backward();
  int compared = 0;
  const auto compare = [&](const std::string& name, const at::Tensor& gradient) {
    const auto expected = golden.find("g." + name);
    // Mathematically zero in parts, and rounding noise in the reference.
    if (name.ends_with("in_proj_bias") || name == "decoder.layers.0.self_attn.in_proj_weight") return;
    ASSERT_NE(expected, golden.end()) << name;
    if (!gradient.defined()) {
      EXPECT_EQ(expected->second.abs().max().item<double>(), 0.0) << name;
      return;
    }
    expect_close_gradient(gradient, expected->second, name);
    ++compared;
  };
  for (const auto& item : transformer.named_parameters()) compare(item.key(), item.value().grad());
  for (const auto& [name, tensor] : Tensors{
           {"src", src}, {"latent", latent}, {"proprio", proprio}, {"query", query}, {"addpos", addpos}, {"pos", pos}})
    compare("in." + name, tensor.grad());
  EXPECT_GT(compared, 40);
}

INSTANTIATE_TEST_SUITE_P(ActPolicy, TransformerCase, testing::Values("post", "pre"),
                         [](const auto& test) { return test.param; });

TEST(ActPolicyLayers, ReluAndDropoutInOne) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const at::Tensor x = torch::randn({6, 50}, generator).requires_grad_(true), y = torch::randn({6, 50}, generator);
  const at::Tensor fused = on.after_relu_(x * 1.0);
  const at::Tensor composed = on(x.view({3, 100}).relu()).view({6, 50});
  EXPECT_TRUE(fused.equal(composed));
  EXPECT_NEAR(fused.eq(0).to(at::kDouble).mean().item<double>(), 0.55, 0.1);
  const at::Tensor gradient = torch::autograd::grad({(fused * y).sum()}, {x})[0];
  EXPECT_TRUE(gradient.allclose(torch::autograd::grad({(composed * y).sum()}, {x})[0]));
}

TEST(ActPolicyLayers, LayersStartAsTheReferencesDo) {
  const LayerShape shape{16, 4, 24, false, Init::xavier};
  Transformer transformer(shape, 2, 2);
  Encoder encoder({16, 4, 24, false, Init::uniform}, 2);
  encoder.copy_first_layer(/*biases_alone=*/false);
  const auto of = [](const torch::nn::Module& module) { return module.named_parameters(); };
  const auto first = of(transformer)["encoder.layers.0.linear1.weight"],
             second = of(transformer)["encoder.layers.1.linear1.weight"];
  EXPECT_FALSE(first.equal(second));
  for (const std::string bias : {"linear1.bias", "linear2.bias"}) {
    EXPECT_TRUE(of(transformer)["encoder.layers.0." + bias].equal(of(transformer)["encoder.layers.1." + bias]));
    EXPECT_TRUE(of(transformer)["decoder.layers.0." + bias].equal(of(transformer)["decoder.layers.1." + bias]));
  }
  const double xavier = std::sqrt(6.0 / (16 + 24)), uniform = 1.0 / std::sqrt(16.0);
  EXPECT_GT(first.abs().max().item<double>(), 0.9 * xavier);
  EXPECT_LE(first.abs().max().item<double>(), xavier);
  EXPECT_LE(of(encoder)["layers.0.linear1.weight"].abs().max().item<double>(), uniform);
  for (const auto& item : encoder.named_parameters()) {
    if (!item.key().starts_with("layers.0.")) continue;
    EXPECT_TRUE(item.value().equal(of(encoder)["layers.1." + item.key().substr(9)])) << item.key();
  }
  EXPECT_EQ(of(transformer)["encoder.layers.0.self_attn.out_proj.bias"].abs().max().item<double>(), 0.0);
}

}  // namespace
}  // namespace headroom
