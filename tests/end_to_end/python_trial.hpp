// Runs of a model of plugins/python by the Python of $HEADROOM_TEST_PYTHON.
#pragma once

#include "trial_run.hpp"

namespace headroom {

// Skipped where the variable is not set. 120 training samples, 15 windows an epoch, a checkpoint every 5 steps.
class PythonTrial : public TrialRun {
 protected:
  void SetUp() override;

  // trial.toml; `options`: further lines of [model.options] beside file, inputs, target and python.
  void write_trial(const std::string& file, const std::string& options) const;

  // A whole run ("whole"), and one that is killed where the file that $PAUSE names appears, and resumed ("killed"):
  // both end with the same weights.
  void expect_bit_equal_after_kill(const std::vector<std::string>& set) const;
};

}  // namespace headroom
