// What steps cost. Every run has a StepMeter, for its summary; a run that is made to be measured (runner/profile) has a
// StepWatch, which hears of the phases that a step is divided into. Where nobody watches, a phase costs a load.
// Torch-free.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <utility>

#include "data/loader.hpp"

namespace headroom {

struct Setup;

// What the thread of the loop is at. Each moment of a step belongs to one of them.
enum class StepPhase : uint8_t {
  wait,  // for a batch of the loader; with data.num_workers = 0 it is read here
  copy,  // of a micro-batch into tensors, and to the device
  forward,
  backward,
  optimizer,  // gradients zeroed, divided and clipped, too
  metrics,    // and what is logged
  checkpoint,
  other,  // of the loop itself: what a retry needs, gc points, the watch over memory
};
inline constexpr size_t step_phase_count = 8;

struct StepEnd {
  int64_t samples = 0;
  int64_t micro_batch = 0;  // in use
  LoaderTimes read;         // of all loaders, since the run began
};

// Called by the thread of the loop.
class StepWatch {
 public:
  virtual ~StepWatch() = default;
  virtual void begin_run(const Setup& setup) = 0;
  virtual void begin_step() = 0;
  virtual bool end_step(const StepEnd& end) = 0;          // false: it has seen enough, and the run stops
  virtual StepPhase enter(StepPhase phase) noexcept = 0;  // also between two steps; returns the phase before
};

// Of this thread; NULL: none.
inline constinit thread_local StepWatch* watch_of_thread = nullptr;

// `watch`, which may be NULL, hears of the phases of this thread until the end of the scope.
class WatchScope {
 public:
  explicit WatchScope(StepWatch* watch) : before_(std::exchange(watch_of_thread, watch)) {}
  ~WatchScope() { watch_of_thread = before_; }
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

 private:
  StepWatch* before_;
};

// This thread is at `phase` until the end of the scope, but for the scopes within it.
class PhaseScope {
 public:
  explicit PhaseScope(StepPhase phase)
      : watch_(watch_of_thread), before_(watch_ == nullptr ? phase : watch_->enter(phase)) {}
  ~PhaseScope() {
    if (watch_ != nullptr) watch_->enter(before_);
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  StepWatch* watch_;
  StepPhase before_;
};

// Medians over the last windows, once a run has settled, for the summary and the benches. Steady state should show no
// page faults: memory that a step used is used again by the next. [compute]
class StepMeter {
 public:
  // Around one window, its retries included. What lies between end() and the next begin() counts for nothing.
  void begin();
  void end();

  // {"windows", "median_ms", "median_cpu_ms", "median_minor_faults", "median_tensor_allocations"} of the last 256
  // windows at most; times and faults are of all threads of the process.
  nlohmann::json json() const;

  static constexpr size_t most_windows = 256;

 private:
  struct Reading {
    double ms = 0.0, cpu_ms = 0.0;
    int64_t minor_faults = 0, tensor_allocations = 0;
  };
  static Reading read();

  Reading begun_;
  std::array<Reading, most_windows> windows_{};
  size_t count_ = 0;  // since the start; windows_ is a ring
};

}  // namespace headroom
