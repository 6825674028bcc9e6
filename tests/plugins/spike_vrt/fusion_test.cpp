// The plugin with spikes, and in tiles, against the reference.
#include <gtest/gtest.h>

#include "../models/kinks.hpp"
#include "golden_files.hpp"
#include "plugin_under_test.hpp"

namespace headroom {
namespace {

const std::string kNarrow = R"(
depths = [2, 2, 2, 2, 2, 2, 2, 1, 1]
embed_dims = [16, 16, 16, 16, 16, 16, 16, 24, 24]
num_heads = [2, 2, 2, 2, 2, 2, 2, 2, 2]
window_size = [2, 8, 8]
mul_attn_ratio = 0.5
deformable_groups = 4
indep_reconsts = [8]
drop_path_rate = 0.0
)";

// SpyNet's weights are in a file of their own; `vrt` is in front of VRT's names.
void load_into(Model& model, const Tensors& golden, const Tensors& spynet, const std::string& vrt) {
  Tensors all = golden;
  for (const auto& [name, tensor] : spynet) all["w." + vrt + "spynet." + name] = tensor;
  const torch::NoGradGuard no_grad;
  std::size_t used = 0;
  for (Parameter& parameter : model.parameters()) {
    parameter.tensor->copy_(all.at("w." + parameter.name));
    ++used;
  }
  EXPECT_EQ(used, std::count_if(all.begin(), all.end(), [](const auto& each) { return each.first.starts_with("w."); }));
}

// A golden file, the options of its network, and what is in front of VRT's names.
struct FusionCase {
  std::string file, options, vrt;
};
const FusionCase kCrossAttention{"g_spike_fusion.safetensors", "fusion = \"cross_attention\"\ncharbonnier_eps = 1e-6",
                                 "vrt."},
    kConcat{"h_concat35.safetensors", "fusion = \"concat\"", ""};

// y, loss and the gradients ("grad.") of the plugin on a golden file's clip.
Tensors run_fusion(const FusionCase& of, const Tensors& golden, const Tensors& spynet, at::ScalarType dtype) {
  const at::Tensor& rgb = golden.at("rgb");
  const Camera camera{rgb.size(1), 64, 64, 32};
  const auto model = make_network(kNarrow + of.options, camera);
  load_into(*model, golden, spynet, of.vrt);
  model->to(at::kCPU, dtype);
  train(*model);
  const Clips clips{rgb.to(dtype), golden.at("gt").to(dtype),
                    golden.at("voxel_counts_u8").to(at::kFloat).log1p().to(dtype)};
  const StepResult result = step(*model, clips, camera);
  const at::Tensor loss = result.loss_sum / result.weight;
  loss.backward();
  Tensors found = {{"y", result.outputs[0].detach()}, {"loss", loss.detach()}};
  for (const Parameter& each : model->parameters())
    if (each.trains()) found["grad." + each.name] = each.tensor->grad();
  return found;
}

// In float64, where rounding takes no value over a kink.
void expect_reference(const Tensors& found, const Tensors& golden) {
  expect_close(found.at("y"), golden.at("y"), "y", kOutput);
  expect_close(found.at("loss"), golden.at("loss")[0], "loss", kOutput);
  for (const auto& [name, expected] : golden)
    if (name.starts_with("grad.")) expect_close(found.at(name), expected, name, kGradient);
}

void expect_float_as_double(const FusionCase& of) {
  KINKS_OR_SKIP();
  GOLDEN_OR_SKIP(spynet, "d_spynet_weights.safetensors");
  GOLDEN_OR_SKIP(golden, of.file);
  const auto run = [&, &golden = golden](at::ScalarType dtype) { return run_fusion(of, golden, spynet, dtype); };
  Kinks kinks;
  const Tensors narrow = kinks.note([&] { return run(at::kFloat); }),
                wide = kinks.follow([&] { return run(at::kDouble); });
  EXPECT_LE(kinks.farthest(), 1e-6);
  for (const auto& [name, expected] : wide) {
    if (feeds_places(name)) continue;
    expect_close(narrow.at(name), expected, name, name.starts_with("grad.") ? kGradient : kOutput);
  }
}

TEST(SpikeVrtFusion, CrossAttention) {
  KINKS_OR_SKIP();
  GOLDEN_OR_SKIP(spynet, "d_spynet_weights.safetensors");
  GOLDEN_OR_SKIP(golden, kCrossAttention.file);
  // In the reference's float32 one place is a whole column. It lies 8e-8 pixels beyond, where another pixel is nearest.
  const auto run = [&, &golden = golden] { return run_fusion(kCrossAttention, golden, spynet, at::kDouble); };
  expect_reference(Kinks::turn("ceil", 0, 4686, run), golden);
}
TEST(SpikeVrtFusion, CrossAttentionInFloat) { expect_float_as_double(kCrossAttention); }

TEST(SpikeVrtFusion, Concat) {
  GOLDEN_OR_SKIP(spynet, "d_spynet_weights.safetensors");
  GOLDEN_OR_SKIP(golden, kConcat.file);
  expect_reference(run_fusion(kConcat, golden, spynet, at::kDouble), golden);
}
TEST(SpikeVrtFusion, ConcatInFloat) { expect_float_as_double(kConcat); }

TEST(SpikeVrtTiles, MatchTheReference) {
  GOLDEN_OR_SKIP(spynet, "d_spynet_weights.safetensors");
  GOLDEN_OR_SKIP(golden, "f_tiling.safetensors");
  std::string options = kNarrow;
  options.replace(options.find("embed_dims"), options.find("\nnum_heads") - options.find("embed_dims"),
                  "embed_dims = [8, 8, 8, 8, 8, 8, 8, 8, 8]");
  options.replace(options.find("deformable_groups = 4"), 21, "deformable_groups = 2");
  const Camera camera{5, 64, 64};
  // The whole clip in fp64: rounding in fp32 moves a part of it by up to 9e-5 of the largest value, in the Python
  // re-implementation as well, which in fp64 is 3e-5 from the reference.
  for (const auto& [tile, name, dtype] :
       {std::tuple{"[0, 0]", "full", at::kDouble}, std::tuple{"[4, 64]", "tiled_4_64", at::kFloat}}) {
    const auto model = make_network(options + "fusion = \"none\"\ntile = " + tile, camera);
    load_into(*model, golden, spynet, "");
    model->to(at::kCPU, dtype);
    const at::Tensor x = golden.at("x").to(dtype);
    const at::NoGradGuard no_grad;
    const StepResult result = step(*model, {x, x, {}}, camera, HR_EVAL);
    expect_close(result.outputs[0], golden.at(name), name, kOutput);
  }
}

}  // namespace
}  // namespace headroom
