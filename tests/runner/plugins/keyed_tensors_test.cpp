// Keyed randomness on tensors: equal under any split of the batch, any dtype, any number of threads.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "headroom/sdk/keyed.hpp"

namespace headroom::sdk {
namespace {

// The keys of samples [first, first + count), and the call that carries them.
struct Slice {
  std::vector<uint64_t> keys;
  hr_call native{};

  Slice(int64_t first, int64_t count, hr_mode mode = HR_TRAIN) {
    for (int64_t i = first; i < first + count; ++i) keys.push_back(hr_sample_key(1, 0, 0, static_cast<uint64_t>(i)));
    native = {sizeof(hr_call), mode, 0, keys.size(), keys.data(), kDLCPU, 0, nullptr, 0};
  }
  Call call() const { return Call(&native); }
};

template <class Draw>
void expect_equal_under_splits(Draw draw) {
  const at::Tensor whole = draw(Slice(0, 8), 0, 8);
  for (const int64_t part : {4, 2, 1}) {
    std::vector<at::Tensor> parts;
    for (int64_t first = 0; first < 8; first += part) parts.push_back(draw(Slice(first, part), first, part));
    EXPECT_TRUE(at::equal(whole, at::cat(parts))) << "in parts of " << part;
  }
}

TEST(Keyed, EqualUnderSplits) {
  const at::Tensor x = at::rand({8, 33, 7}) + 1.0;
  expect_equal_under_splits([&](const Slice& slice, int64_t first, int64_t count) {
    return dropout(slice.call(), "a"_site, x.narrow(0, first, count), 0.3);
  });
  expect_equal_under_splits([&](const Slice& slice, int64_t first, int64_t count) {
    return drop_path(slice.call(), "a"_site, x.narrow(0, first, count), 0.5);
  });
  expect_equal_under_splits([&](const Slice& slice, int64_t, int64_t) {
    return normal(slice.call(), "a"_site, {33, 7});
  });
  expect_equal_under_splits([&](const Slice& slice, int64_t, int64_t) { return uniform(slice.call(), "a"_site, {5}); });
}

TEST(Keyed, EqualUnderThreads) {
  const Slice slice(0, 64);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor alone = uniform(slice.call(), "a"_site, {4096});
  at::set_num_threads(3);
  EXPECT_TRUE(at::equal(alone, uniform(slice.call(), "a"_site, {4096})));
  at::set_num_threads(before);
}

TEST(Keyed, UniformValuesAreBelowOne) {
  const Slice slice(0, 4);
  const at::Tensor exact = uniform(slice.call(), "a"_site, {100000});
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::Tensor values = uniform(slice.call(), "a"_site, {100000}, dtype).to(at::kFloat);
    EXPECT_LT(values.max().item<float>(), 1.0f) << dtype;
    EXPECT_GE(values.min().item<float>(), 0.0f) << dtype;
    EXPECT_LT((values - exact).abs().max().item<float>(), 1.0f / 256.0f) << dtype;
  }
}

// The vector form gives the words of headroom/random.h, element by element.
TEST(Keyed, WordsAreTheHeaders) {
  const Slice slice(0, 2);
  const at::Tensor values = uniform(slice.call(), "a"_site, {101});
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t e = 0; e < 101; ++e) {
      uint32_t words[4];
      hr_philox(slice.keys[static_cast<std::size_t>(i)], "a"_site, static_cast<uint64_t>(e / 4), words);
      ASSERT_EQ(values[i][e].item<float>(), hr_uniform_f32(words[e % 4])) << i << ' ' << e;
    }
  }
}

TEST(Keyed, DropoutKeepsTheMean) {
  const Slice slice(0, 16);
  const at::Tensor x = at::ones({16, 10000});
  for (const double p : {0.1, 0.5, 0.9}) {
    const at::Tensor y = dropout(slice.call(), "a"_site, x, p);
    EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.03) << p;
    EXPECT_NEAR((y == 0).to(at::kDouble).mean().item<double>(), p, 0.01);
    EXPECT_NEAR(y.max().item<double>(), 1.0 / (1.0 - p), 1e-5);
  }
  const at::Tensor paths = drop_path(Slice(0, 2000).call(), "a"_site, at::ones({2000, 3}), 0.25);
  EXPECT_NEAR(paths.mean().item<double>(), 1.0, 0.05);
  EXPECT_TRUE(at::equal(paths.select(1, 0), paths.select(1, 2)));  // all of a sample, or nothing
}

TEST(Keyed, NormalIsNormal) {
  const at::Tensor values = normal(Slice(0, 8).call(), "a"_site, {10001}, at::kDouble);
  EXPECT_EQ(values.sizes(), at::IntArrayRef({8, 10001}));
  EXPECT_NEAR(values.mean().item<double>(), 0.0, 0.02);
  EXPECT_NEAR(values.std().item<double>(), 1.0, 0.02);
  EXPECT_NEAR((values.abs() < 1.0).to(at::kDouble).mean().item<double>(), 0.6827, 0.01);
  EXPECT_NEAR((values.narrow(1, 0, 10000) * values.narrow(1, 1, 10000)).mean().item<double>(), 0.0, 0.02);
}

TEST(Keyed, SitesAndSamplesDiffer) {
  const Slice slice(0, 2);
  const at::Tensor x = at::ones({2, 1000});
  const at::Tensor a = dropout(slice.call(), "a"_site, x, 0.5), b = dropout(slice.call(), "b"_site, x, 0.5);
  EXPECT_FALSE(at::equal(a, b));
  EXPECT_FALSE(at::equal(a[0], a[1]));
  EXPECT_TRUE(at::equal(a, dropout(slice.call(), "a"_site, x, 0.5)));
}

TEST(Keyed, TheMaskIsTheSameInAnyPrecision) {
  const Slice slice(0, 4);
  const at::Tensor x = at::ones({4, 100});
  const at::Tensor single = dropout(slice.call(), "a"_site, x, 0.5),
                   twice = dropout(slice.call(), "a"_site, x.to(at::kDouble), 0.5);
  EXPECT_EQ(twice.scalar_type(), at::kDouble);
  EXPECT_TRUE(at::equal(single.to(at::kDouble), twice));
}

TEST(Keyed, GradientsFollowTheMask) {
  const Slice slice(0, 2);
  const at::Tensor x = torch::ones({2, 50}, at::requires_grad());
  const at::Tensor y = dropout(slice.call(), "a"_site, x, 0.5);
  y.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), y.detach()));
}

TEST(Keyed, OutsideTrainingNothingIsDropped) {
  const Slice slice(0, 2, HR_EVAL);
  const at::Tensor x = at::rand({2, 50});
  EXPECT_TRUE(dropout(slice.call(), "a"_site, x, 0.5).is_same(x));
  EXPECT_TRUE(drop_path(slice.call(), "a"_site, x, 0.5).is_same(x));
}

TEST(Keyed, EdgesAndMistakes) {
  const Slice slice(0, 2);
  const at::Tensor x = at::rand({2, 50});
  EXPECT_TRUE(dropout(slice.call(), "a"_site, x, 0.0).is_same(x));
  EXPECT_EQ(dropout(slice.call(), "a"_site, x, 1.0).abs().sum().item<double>(), 0.0);
  EXPECT_EQ(dropout(slice.call(), "a"_site, at::rand({2, 0}), 0.5).numel(), 0);
  EXPECT_THROW(dropout(slice.call(), "a"_site, at::rand({3, 50}), 0.5), Error);
  EXPECT_THROW(dropout(slice.call(), "a"_site, at::rand({}), 0.5), Error);
  EXPECT_THROW(dropout(slice.call(), "a"_site, x, 1.5), Error);
  EXPECT_THROW(dropout(slice.call(), "a"_site, x, std::nan("")), Error);
}

}  // namespace
}  // namespace headroom::sdk
