// `headroom profile`: the first steps of an experiment, measured. Needs LibTorch.
#pragma once

#include <filesystem>
#include <optional>

#include "profile/profile.hpp"
#include "train/train.hpp"

namespace headroom {

// Made on the thread of the loop, and used there. [compute]
class StepProfile final : public StepWatch {
 public:
  // Measures `steps` windows after `warm_up` others, and then has seen enough. `trace`, which may be NULL, gets every
  // span of them.
  StepProfile(int64_t warm_up, int64_t steps, Trace* trace);

  void begin_run(const Setup& setup) override;
  void begin_step() override;
  bool end_step(const StepEnd& end) override;
  StepPhase enter(StepPhase phase) noexcept override;

  bool done() const { return static_cast<int64_t>(profile_.step_ns.size()) == steps_; }
  // REQUIRES: done(). With what memory was held at the peak by now.
  Profile result() const;

 private:
  bool is_warm() const { return windows_ >= warm_up_; }
  void count(bool counts);
  Spent now() const noexcept;
  void leave_phase(const Spent& until) noexcept;
  void note_checkpoint(StepPhase before, StepPhase after) noexcept;

  const int64_t warm_up_, steps_;
  Trace* const trace_;
  Profile profile_;
  std::optional<OperatorTimes> operators_;  // while steps are measured
  std::optional<PluginCallTimes> calls_;
  LoaderTimes read_before_;  // when measuring began
  int device_index_ = -1;    // of a GPU, which is waited for
  int64_t windows_ = 0;      // that have ended
  bool in_step_ = false;     // that is measured
  StepPhase phase_ = StepPhase::other;
  Spent step_began_, phase_began_;  // readings since the process began
  int64_t checkpoint_began_ns_ = 0;
};

inline constexpr int64_t profile_warm_up_steps = 5;

struct ProfileRequest {
  TrainRequest run;  // a new one; whoever starts it removes `run.out` when it is over
  int64_t steps = 20;
  std::filesystem::path trace;  // file; empty: none
};

// Runs the experiment as train() would, over its data again where it has fewer steps, evaluates nothing and fills in
// `profile`. Not Exit::ok: stopped before so many steps by a signal, or because others took the memory; then `profile`
// stays empty. Errors as train(). [control]
Exit profile_run(ProfileRequest request, Profile& profile);

}  // namespace headroom
