// What a step costs once a run has settled: medians over the last windows, for the summary and the benches. Steady
// state should show no page faults: memory that a step used is used again by the next.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace headroom {

// [compute]
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
