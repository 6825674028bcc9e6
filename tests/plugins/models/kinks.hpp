// Where an operation has a kink or a jump, rounding decides on which side of it a value is, and a gradient changes by
// all that the unit counts: two right computations differ by far more than rounding. So a float64 run is put on the
// sides that another run took, and the two are compared there.
//
//   Kinks kinks;
//   const auto narrow = kinks.note([&] { return run(float32); });
//   const auto wide = kinks.follow([&] { return run(float64); });   // each unit on the side it had in float32
//   EXPECT_LE(kinks.farthest(), 1e-6);
#pragma once

#include <ATen/record_function.h>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <torch/torch.h>
#include <utility>
#include <vector>

namespace headroom {

// Sees the inputs of relu, leaky_relu, floor and ceil, whoever calls them on this thread. Not those of abs in a loss,
// of grid_sampler and of kernels of our own: they go between pixels without a jump, but have a kink at every whole one.
class Kinks {
 public:
// LibTorch's RecordFunction has one member more where NDEBUG is not defined, and LibTorch itself is built with it.
#if defined(NDEBUG)
  static constexpr bool kCanSee = true;
#else
  static constexpr bool kCanSee = false;
#endif

  // run(), whose sides are kept.
  template <class Run>
  auto note(Run run) {
    calls_.clear();
    farthest_ = 0.0;
    const Watch watch([this](const std::string& operation, const at::Tensor& input) {
      calls_.push_back({operation, input.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true)});
    });
    auto result = run();
    EXPECT_FALSE(calls_.empty()) << "no operation was seen";
    return result;
  }

  // run(), of which one value is put just beyond its kink: the `element` of the `call`-th of an operation, from 0.
  // Rounding must be able to take it there.
  template <class Run>
  static auto turn(const std::string& operation, int64_t call, int64_t element, Run run) {
    bool turned = false;
    const Watch watch([&](const std::string& seen, const at::Tensor& input) {
      if (seen != operation || call-- != 0) return;
      at::Tensor value = input.view({-1})[element];
      const at::Tensor kink = jumps(operation) ? value.round() : at::zeros_like(value);
      EXPECT_LE(((value - kink).abs() / input.abs().max()).item<double>(), 1e-6) << operation << ' ' << element;
      value.copy_(kink - 1e-3 * (value - kink));
      turned = true;
    });
    auto result = run();
    EXPECT_TRUE(turned) << "there are not so many calls of " << operation;
    return result;
  }

  // run(), which must make the same calls. What is on another side than noted is moved there before the operation sees
  // it.
  template <class Run>
  auto follow(Run run) {
    std::size_t next = 0;
    const Watch watch([this, &next](const std::string& operation, const at::Tensor& input) {
      ASSERT_LT(next, calls_.size()) << "more calls than were noted";
      const Call& noted = calls_[next++];
      ASSERT_EQ(operation, noted.operation);
      ASSERT_EQ(input.sizes(), noted.input.sizes()) << operation;
      move_over(input, noted);
    });
    auto result = run();
    EXPECT_EQ(next, calls_.size());
    return result;
  }

  // The longest way that follow() moved a value, in its call's largest one; 0: it moved none.
  double farthest() const { return farthest_; }

 private:
  struct Call {
    std::string operation;
    at::Tensor input;  // float64
  };

  static bool jumps(const std::string& operation) { return operation == "floor" || operation == "ceil"; }

  static at::Tensor sides(const at::Tensor& input, const std::string& operation) {
    if (operation == "floor") return input.floor();
    return operation == "ceil" ? input.ceil() : input.gt(0);
  }

  void move_over(at::Tensor input, const Call& noted) {
    const at::Tensor crossed = sides(input, noted.operation).ne(sides(noted.input, noted.operation));
    if (!crossed.any().item<bool>()) return;
    const at::Tensor ways = (input - noted.input).abs().masked_select(crossed);
    farthest_ = std::max(farthest_, (ways.max() / noted.input.abs().max()).item<double>());
    input.copy_(at::where(crossed, noted.input, input));
  }

  using See = std::function<void(const std::string& operation, const at::Tensor& input)>;

  // Calls `see`, without its own operations, while it lives; one at a time.
  class Watch {
   public:
    explicit Watch(See see) : see_(std::move(see)) {
      now_ = this;
      handle_ = at::addThreadLocalCallback(
          at::RecordFunctionCallback(&Watch::begin).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() {
      at::removeCallback(handle_);
      now_ = nullptr;
    }

   private:
    static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
      std::string operation = function.name();
      if (operation.starts_with("aten::")) operation.erase(0, 6);
      if (operation.ends_with('_')) operation.pop_back();
      if (now_ == nullptr || (operation != "relu" && operation != "leaky_relu" && !jumps(operation))) return nullptr;
      struct Pause {
        Watch* watch = std::exchange(now_, nullptr);
        ~Pause() { now_ = watch; }
      } const pause;
      const at::NoGradGuard no_grad;
      pause.watch->see_(operation, function.inputs()[0].toTensor().detach());
      return nullptr;
    }

    See see_;
    at::CallbackHandle handle_;
    inline static thread_local Watch* now_ = nullptr;
  };

  std::vector<Call> calls_;
  double farthest_ = 0.0;
};

// Leaves the test where operations cannot be seen: in the presets with assertions.
#define KINKS_OR_SKIP() \
  if (!Kinks::kCanSee) GTEST_SKIP() << "this build has assertions, with which LibTorch's operations cannot be watched"

}  // namespace headroom
