// What stands before every kernel test: a place in a cgroup of its own, or the reason why there is none.
#pragma once

#include "kernel_cgroup.hpp"
#include "neighbour.hpp"
#include "trial_run.hpp"

namespace headroom {

constexpr int64_t mib = 1 << 20;

// Skips with the reason where no cgroup can be made. Beside trial.toml there is hungry.toml: the plugins of
// tests/runner/train/hungry, 48 training and 16 validation samples.
class InCgroup : public TrialRun {
 protected:
  void SetUp() override;

  StartPlace inside(const KernelCgroup& cgroup) const;
  // `headroom run hungry.toml --out OUT --set ...`; only words that begin with "--" go as they are.
  std::vector<std::string> hungry(const std::vector<std::string>& words, const std::string& out = "runs") const;
  // memory.measured_peak_bytes of the one run below OUT; 0 where there is no such number.
  int64_t measured_peak(const std::string& out = "runs") const;
};

}  // namespace headroom
