// `headroom profile`: measures the first steps of an experiment. Needs LibTorch.
#pragma once

#include <filesystem>
#include <optional>

#include "profile/profile.hpp"
#include "train/train.hpp"

namespace headroom {

// Made and used on the thread of the loop. [compute]
class StepProfile final : public StepWatch {
 public:
  // Measures `steps` windows after `warm_up` others. `trace` may be NULL; otherwise it gets every span of them.
  StepProfile(int64_t warm_up, int64_t steps, Trace* trace);

  void begin_run(const Setup& setup) override;
  void begin_step() override;
  bool end_step(const StepEnd& end) override;
  StepPhase enter(StepPhase phase) noexcept override;

  bool done() const { return static_cast<int64_t>(profile_.step_ns.size()) == steps_; }
  // The profile, with the peak of memory so far. REQUIRES: done().
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
  int device_index_ = -1;    // of the GPU to synchronise with; -1: none
  int64_t windows_ = 0;      // finished
  bool in_step_ = false;     // a measured one
  StepPhase phase_ = StepPhase::other;
  Spent step_began_, phase_began_;  // readings since the process began
  int64_t checkpoint_began_ns_ = 0;
};

inline constexpr int64_t profile_warm_up_steps = 5;

struct ProfileRequest {
  TrainRequest run;  // a new run; the caller removes `run.out` afterwards
  int64_t steps = 20;
  std::filesystem::path trace;  // file; empty: none
};

// Runs the experiment as train() would, repeating its data where it has fewer steps, without evaluation, and fills in
// `profile`. Returns another code than Exit::ok where a signal stopped it early, or because other processes took the
// memory; `profile` is then empty. Errors as train(). [control]
Exit profile_run(ProfileRequest request, Profile& profile);

}  // namespace headroom
