// Gradients that are summed over real processes while backward runs: exactly, whatever one of them meets.
#include "train/gradient_reduction.hpp"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>

#include "../ranks/in_ranks.hpp"
#include "memory/ledger.hpp"
#include "memory/tensor_allocator.hpp"

namespace headroom {
namespace {

// Weights of a chain of products, whose gradients come from the last to the first.
class Chain {
 public:
  static constexpr int64_t width = 20;

  explicit Chain(int64_t length) : weights(static_cast<size_t>(length)), parameters_(weights.size()) {
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] = at::full({width}, 1.0 + 0.1 * static_cast<double>(i), at::kDouble).requires_grad_(true);
      parameters_[i] = {.name = std::to_string(i), .group = "", .tensor = &weights[i]};
      trainable.push_back(&parameters_[i]);
    }
  }

  // `between`, applied behind each of the weights, is reached by backward after the gradients of those behind it.
  using Between = std::function<at::Tensor(const at::Tensor& x, size_t weight)>;
  at::Tensor loss(double input, const Between& between = {}) const {
    at::Tensor x = at::full({width}, input, at::kDouble);
    for (size_t i = 0; i < weights.size(); ++i) {
      x = x * weights[i];
      if (between) x = between(x, i);
    }
    return x.sum();
  }

  // Of sum(inputs) as one process has it.
  std::vector<at::Tensor> gradients(const std::vector<double>& inputs) const {
    Chain other(static_cast<int64_t>(weights.size()));
    for (const double input : inputs) other.loss(input).backward();
    std::vector<at::Tensor> all;
    for (const at::Tensor& weight : other.weights) all.push_back(weight.grad());
    return all;
  }
  bool has(const std::vector<at::Tensor>& expected) const {
    bool equal = true;
    for (size_t i = 0; i < weights.size(); ++i)
      equal = equal && at::allclose(weights[i].grad(), expected[i], 1e-14, 0.0);
    return equal;
  }

  std::vector<at::Tensor> weights;
  std::vector<Parameter*> trainable;

 private:
  std::vector<Parameter> parameters_;
};

constexpr int64_t each_alone = 1;  // byte: a bucket for every gradient

// Calls `told` when backward comes by.
struct Milestone : torch::autograd::Function<Milestone> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, int64_t told) {
    context->saved_data["told"] = told;
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    (*reinterpret_cast<const std::function<void()>*>(context->saved_data["told"].toInt()))();
    return {gradients[0], at::Tensor()};
  }
};

Chain::Between behind(size_t weight, const std::function<void()>& told) {
  return [weight, &told](const at::Tensor& x, size_t at) {
    return at == weight ? Milestone::apply(x, reinterpret_cast<int64_t>(&told)) : x;
  };
}

void last_pass(GradientReduction& reduction, const at::Tensor& loss) {
  const GradientReduction::LastPass last(&reduction);
  if (!reduction.has_sent()) return loss.backward();
  const std::vector<at::Tensor> open = reduction.open_parameters();
  if (!open.empty()) loss.backward({}, std::nullopt, false, at::TensorList(open));
}

TEST(GradientBuckets, LieBehindEachOtherFromTheLastToTheFirstAndCountOnce) {
  install_tensor_allocator();
  std::vector<at::Tensor> weights = {at::ones({100, 100}),
                                     at::ones({4, 6, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast), at::ones({3}),
                                     at::ones({5}, at::kDouble)};
  std::vector<Parameter> parameters;
  std::vector<Parameter*> trainable;
  for (at::Tensor& weight : weights) parameters.push_back({.name = "", .group = "", .tensor = &weight});
  for (Parameter& parameter : parameters) trainable.push_back(&parameter);
  const int64_t before = read_ledger().live(Owner::gradients);
  const std::vector<GradientBucket> buckets = make_gradient_buckets(trainable, 1000);
  const int64_t taken = read_ledger().live(Owner::gradients) - before;

  ASSERT_EQ(buckets.size(), 3u) << "one of doubles, one of two small ones, one that is large by itself";
  EXPECT_EQ(buckets[0].parameters.front()->tensor, &weights[3]);
  ASSERT_EQ(buckets[1].parameters.size(), 2u);
  EXPECT_EQ(buckets[1].parameters.front()->tensor, &weights[2]);
  int64_t bytes = 0;
  for (const at::Tensor& weight : weights) {
    EXPECT_EQ(weight.grad().strides(), weight.strides());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(weight.grad().const_data_ptr()) % 64, 0u);
    EXPECT_EQ(weight.grad().abs().sum().item<double>(), 0.0);
    bytes += static_cast<int64_t>(weight.nbytes());
  }
  EXPECT_GE(taken, bytes);
  EXPECT_LE(taken, bytes + bytes / 4) << "lines and size classes";
  const auto version = weights[1].grad()._version();
  weights[2].grad().add_(1);
  EXPECT_EQ(weights[1].grad()._version(), version) << "each has its own";
  EXPECT_EQ(buckets[1].memory[0].item<float>(), 1.0F) << "one memory";
}

TEST(GradientReduction, SendsWhileBackwardRunsAndSumsToTheSameBits) {
  for (const int64_t most_bytes : {each_alone, most_bucket_bytes}) {
    const auto ended = in_ranks(3, [&](RankGroup& group) {
      Chain chain(4);
      GradientReduction reduction(group, chain.trainable, most_bytes);
      const std::vector<at::Tensor> expected = chain.gradients({1.0, 2.0, 3.0, 0.5, 0.5, 0.5});
      for (int window = 0; window < 3; ++window) {
        reduction.begin();
        for (const at::Tensor& gradient : reduction.open_gradients()) gradient.zero_();
        chain.loss(0.5).backward();
        if (reduction.has_sent()) return 1;
        bool sent_before_the_end = false;
        const std::function<void()> look = [&] { sent_before_the_end = reduction.has_sent(); };
        last_pass(reduction, chain.loss(1.0 + group.ranks().rank, behind(0, look)));
        if (!reduction.finish()) return 2;
        if (sent_before_the_end != (most_bytes == each_alone)) return 3;
        if (!chain.has(expected)) return 4;
      }
      std::string bits;
      for (const at::Tensor& weight : chain.weights)
        bits.append(static_cast<const char*>(weight.grad().const_data_ptr()), weight.grad().nbytes());
      for (const std::string& other : group.gather(bits)) {
        if (other != bits) return 5;
      }
      return as_expected;
    });
    EXPECT_EQ(ended, std::vector<int>(3, as_expected));
  }
}

// A head that is registered before what leads to it: the first window tells.
TEST(GradientReduction, SendsInTheOrderOfBackwardWhateverTheOrderOfParameters) {
  const auto ended = in_ranks(2, [](RankGroup& group) {
    Chain chain(4);
    std::ranges::reverse(chain.trainable);
    GradientReduction reduction(group, chain.trainable, each_alone);
    const std::vector<at::Tensor> expected = chain.gradients({1.0, 2.0});
    for (int window = 0; window < 3; ++window) {
      reduction.begin();
      for (const at::Tensor& gradient : reduction.open_gradients()) gradient.zero_();
      bool sent_before_the_end = false;
      const std::function<void()> look = [&] { sent_before_the_end = reduction.has_sent(); };
      // Rank 0 has no sample in the first.
      if (window > 0 || group.ranks().rank == 1)
        last_pass(reduction, chain.loss(1.0 + group.ranks().rank, behind(0, look)));
      if (!reduction.finish()) return 1;
      if (sent_before_the_end != (window == 2)) return 2;
      if (window > 0 && !chain.has(expected)) return 3;
    }
    return as_expected;
  });
  EXPECT_EQ(ended, std::vector<int>(2, as_expected));
}

// One rank has no samples, for another some parameters have no gradient, and one is frozen for all.
TEST(GradientReduction, NobodyWaitsForAGradientThatDoesNotCome) {
  const auto ended = in_ranks(3, [](RankGroup& group) {
    Chain chain(4);
    chain.weights[3].requires_grad_(false);
    GradientReduction reduction(group, chain.trainable, each_alone);
    reduction.begin();
    if (group.ranks().rank == 0) last_pass(reduction, chain.loss(2.0));
    if (group.ranks().rank == 1) last_pass(reduction, (chain.weights[1] * 7.0).sum());
    if (!reduction.finish()) return 1;
    std::vector<at::Tensor> expected = chain.gradients({2.0});
    expected[1] += 7.0;
    expected[3].zero_();
    return chain.has(expected) ? as_expected : 2;
  });
  EXPECT_EQ(ended, std::vector<int>(3, as_expected));
}

// Before, between and after the buckets, on each rank, twice in a row.
TEST(GradientReduction, AShareThatRunsOutOfMemoryIsComputedAgainForWhatWasNotSent) {
  for (int failing = 0; failing < 2; ++failing) {
    for (size_t where = 0; where < 4; ++where) {
      const auto ended = in_ranks(2, [&](RankGroup& group) {
        Chain chain(4);
        GradientReduction reduction(group, chain.trainable, each_alone);
        const std::vector<at::Tensor> expected = chain.gradients({1.0, 2.0, 0.5, 0.5});
        reduction.begin();
        int failures = group.ranks().rank == failing ? 2 : 0;
        const std::function<void()> fail = [&] {
          if (failures > 0 && failures-- > 0) TORCH_CHECK_WITH(OutOfMemoryError, false, "no memory");
        };
        for (;;) {
          for (const at::Tensor& gradient : reduction.open_gradients()) gradient.zero_();
          const std::vector<at::Tensor> open = reduction.open_parameters();
          if (!open.empty()) chain.loss(0.5).backward({}, std::nullopt, false, at::TensorList(open));
          try {
            last_pass(reduction, chain.loss(1.0 + group.ranks().rank, behind(where, fail)));
            break;
          } catch (const c10::OutOfMemoryError&) {
            // The fourth weight's gradient is there when the third's milestone comes.
            if (reduction.has_sent() != (where < 3)) return 1;
          }
        }
        if (!reduction.finish()) return 2;
        return failures == 0 && chain.has(expected) ? as_expected : 3;
      });
      EXPECT_EQ(ended, std::vector<int>(2, as_expected)) << "rank " << failing << ", behind weight " << where;
    }
  }
}

// After its last bucket, where the sums of a window are added.
TEST(GradientReduction, AShareThatWasSentAsAWholeIsNotSentAgain) {
  const auto ended = in_ranks(2, [](RankGroup& group) {
    Chain chain(3);
    GradientReduction reduction(group, chain.trainable, each_alone);
    reduction.begin();
    for (int passes = group.ranks().rank == 1 ? 2 : 1; passes > 0; --passes) {
      for (const at::Tensor& gradient : reduction.open_gradients()) gradient.zero_();
      last_pass(reduction, chain.loss(3.0));
    }
    return reduction.finish() && chain.has(chain.gradients({3.0, 3.0})) ? as_expected : 1;
  });
  EXPECT_EQ(ended, std::vector<int>(2, as_expected));
}

// A plugin's backward that adds to a gradient by itself, after it was sent.
TEST(GradientReduction, AGradientThatChangesTooLateIsSummedAtTheEnd) {
  const auto ended = in_ranks(2, [](RankGroup& group) {
    Chain chain(3);
    GradientReduction reduction(group, chain.trainable, each_alone);
    const std::function<void()> add = [&] {
      const at::NoGradGuard no_grad;
      if (group.ranks().rank == 1) chain.weights[2].mutable_grad().add_(1.0);
    };
    std::vector<at::Tensor> expected = chain.gradients({3.0, 3.0});
    expected[2] += 1.0;
    for (int attempt = 0; attempt < 2; ++attempt) {
      reduction.begin();
      for (const at::Tensor& gradient : reduction.open_gradients()) gradient.zero_();
      last_pass(reduction, chain.loss(3.0, behind(0, add)));
      const bool holds = group.on_all(reduction.finish());
      if (holds != (attempt == 1)) return 1;
    }
    return chain.has(expected) ? as_expected : 2;
  });
  EXPECT_EQ(ended, std::vector<int>(2, as_expected));
}

// What a plugin has hung on a parameter goes on, also after the reduction.
TEST(GradientReduction, LeavesTheHooksOfAPluginAsTheyWere) {
  struct Counter : torch::autograd::PostAccumulateGradHook {
    explicit Counter(int& counted) : count(counted) {}
    void operator()(const at::Tensor&) override { ++count; }
    int& count;
  };
  const auto ended = in_ranks(2, [](RankGroup& group) {
    Chain chain(2);
    int count = 0;
    torch::autograd::impl::set_post_acc_grad_hooks(chain.weights[0], std::make_unique<Counter>(count));
    {
      GradientReduction reduction(group, chain.trainable, each_alone);
      reduction.begin();
      last_pass(reduction, chain.loss(1.0));
      if (!reduction.finish()) return 1;
    }
    chain.loss(1.0).backward();
    return count == 2 ? as_expected : 2;
  });
  EXPECT_EQ(ended, std::vector<int>(2, as_expected));
}

}  // namespace
}  // namespace headroom
