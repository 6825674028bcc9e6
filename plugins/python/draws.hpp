// Keyed randomness for code that knows nothing of it: while a DrawScope is open on a thread, LibTorch's random
// operators draw what they fill a tensor with from the keys of the step's samples. A sample's numbers are then a
// function of (its key, the place of the draw in the step, element), for any division of a batch, retry and resume.
//
// A place is one number of LibTorch's CPU generator, which each scope begins anew: so activation checkpointing, which
// puts the generator back before it runs a piece again, gets the same numbers again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <torch/torch.h>
#include <vector>

namespace headroom::python {

// Where the samples lie in a tensor that is drawn: `repeat` places of the axis are one sample's (heads of attention).
// axis -1: it has none, and all samples of a window share one draw.
struct SampleAxis {
  int64_t axis = 0, repeat = 1;
};

// What a step of one mode draws: by place, the shape with two samples and with three. Found by trying.
class DrawPlan {
 public:
  using Shapes = std::map<uint64_t, std::vector<int64_t>>;

  DrawPlan() = default;
  DrawPlan(Shapes with_two, Shapes with_three) : two_(std::move(with_two)), three_(std::move(with_three)) {}

  bool empty() const { return two_.empty() && three_.empty(); }
  // Of a tensor drawn at `place` in a step of `count` samples. Where the plan does not know the place, the axis that is
  // as long as there are samples. sdk::Error where that is not clear.
  SampleAxis axis(uint64_t place, at::IntArrayRef shape, int64_t count) const;

 private:
  Shapes two_, three_;
};

// Makes LibTorch's random operators ask for the scope of their thread. Once a process. [control]
void intercept_draws();

class DrawScope {
 public:
  enum class Pass : uint64_t { forward = 1, backward = 2 };

  // All arguments outlive it. `seen`: collects shapes instead of asking the plan, and may be NULL.
  DrawScope(Pass pass, std::span<const uint64_t> keys, uint64_t window_key, const DrawPlan& plan,
            DrawPlan::Shapes* seen = nullptr);
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;
  ~DrawScope();

  static const DrawScope* current();

  // One draw into a tensor of this shape.
  struct Draw {
    uint64_t place;
    SampleAxis samples;
  };
  Draw begin_draw(at::IntArrayRef shape) const;

  std::span<const uint64_t> keys() const { return keys_; }
  uint64_t window_key() const { return window_key_; }

 private:
  std::span<const uint64_t> keys_;
  uint64_t window_key_;
  const DrawPlan& plan_;
  DrawPlan::Shapes* seen_;
  const DrawScope* outer_;
  at::mt19937 engine_;
  std::optional<float> normal_;
  c10::impl::IncludeDispatchKeyGuard intercepting_;
};

}  // namespace headroom::python
