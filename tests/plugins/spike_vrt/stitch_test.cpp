// Tiles stitched together, with a fake network; images scored.
#include <gtest/gtest.h>

#include "golden_files.hpp"
#include "score.hpp"
#include "tiling.hpp"

namespace headroom {
namespace {

// What the golden file's fake network does: 2 x + .001 row + .0001 column + .01 frame, counted within the tile.
at::Tensor fake(const at::Tensor& clip) {
  const at::Tensor x = clip.narrow(2, 0, 3);
  const auto ramp = [&](int64_t axis) { return at::arange(x.size(axis), x.options()); };
  return 2 * x + 0.001 * ramp(3).unsqueeze(1) + 0.0001 * ramp(4) + 0.01 * ramp(1).view({-1, 1, 1, 1});
}

TEST(SpikeVrtTiling, StitchesAsTheReference) {
  GOLDEN_OR_SKIP(golden, "f_tiling.safetensors");
  const std::vector<std::pair<std::string, Tiles>> cases = {
      {"t6_s32_o2_20", {true, 6, 32, 2, 20}},
      {"t4_s40_o2_21", {true, 4, 40, 2, 21}},
      {"t0_s0", {true, 0, 0, 2, 20}},
      {"t0_s48_o2_20", {true, 0, 48, 2, 20}},
      {"t40_s128_o2_20_larger_than_input", {true, 40, 128, 2, 20}}};
  for (const auto& [name, tiles] : cases) {
    const at::Tensor stitched = restore_tiled(golden.at("stitch.x"), tiles, {6, 8, 8}, fake);
    expect_close(stitched, golden.at("stitch." + name), name, 1e-6);
  }
}

// Shorter than a window, lower than a tile, of no multiple of 8: the network sees none of that.
TEST(SpikeVrtTiling, ShortClipsOfLowFramesArePadded) {
  const at::Tensor clip = torch::rand({1, 2, 4, 20, 45});
  for (const Tiles& tiles : {Tiles{true, 0, 32, 2, 8}, Tiles{true, 0, 0, 2, 8}, Tiles{true, 4, 32, 2, 8}}) {
    const auto copy = [](const at::Tensor& part) {
      EXPECT_EQ(part.size(3) % 8, 0);
      EXPECT_EQ(part.size(4) % 8, 0);
      return part.narrow(2, 0, 3);
    };
    const at::Tensor restored = restore_tiled(clip, tiles, {6, 4, 4}, copy);
    EXPECT_TRUE(at::allclose(restored, clip.narrow(2, 0, 3))) << tiles.frames << " " << tiles.pixels;
  }
}

TEST(SpikeVrtScore, PsnrOfAKnownError) {
  const at::Tensor a = as_stored(at::full({2, 3, 16, 16}, 0.5)), b = a.clone();
  b[1] += 5.0;
  const at::Tensor values = psnr(a, b);
  EXPECT_EQ(values[0].item<double>(), 100.0) << "equal";
  EXPECT_NEAR(values[1].item<double>(), 10.0 * std::log10(255.0 * 255.0 / 25.0), 1e-9);
  EXPECT_EQ(as_stored(at::tensor({-0.1, 0.5, 1.2})).equal(at::tensor({0.0, 128.0, 255.0}, at::kDouble)), true);
}

// As the plain 2-D formula, written out at one place; and the bounds it has.
TEST(SpikeVrtScore, SsimByHand) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const at::Tensor a = as_stored(torch::rand({1, 1, 11, 11}, generator)),
                   b = as_stored(torch::rand({1, 1, 11, 11}, generator));
  const at::Tensor place = at::arange(-5, 6, at::kDouble), line = (place.square() / -4.5).exp();
  const at::Tensor window = at::outer(line, line) / at::outer(line, line).sum();
  const auto mean = [&](const at::Tensor& x) { return (x.squeeze() * window).sum().item<double>(); };
  const double ma = mean(a), mb = mean(b), va = mean(a * a) - ma * ma, vb = mean(b * b) - mb * mb,
               ab = mean(a * b) - ma * mb;
  const double c1 = 6.5025, c2 = 58.5225;
  EXPECT_NEAR(ssim(a, b).item<double>(),
              (2 * ma * mb + c1) * (2 * ab + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2)), 1e-9);
  EXPECT_NEAR(ssim(a, a).item<double>(), 1.0, 1e-12);
}

}  // namespace
}  // namespace headroom
