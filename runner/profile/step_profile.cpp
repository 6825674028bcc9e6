#include "profile/step_profile.hpp"

#include <algorithm>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <cstdint>
#include <optional>
#include <sys/resource.h>
#include <utility>

#include "memory/budget.hpp"
#include "memory/steady_ns.hpp"
#include "train/setup.hpp"

namespace headroom {

namespace {

int64_t nanoseconds(const timeval& time) {
  return 1'000'000'000 * int64_t{time.tv_sec} + 1'000 * int64_t{time.tv_usec};
}

// What a GPU was given to do is done in the phase that gave it.
void wait_for_device(int index) noexcept {
  try {
    c10::impl::VirtualGuardImpl(at::kCUDA).synchronizeDevice(static_cast<c10::DeviceIndex>(index));
  } catch (const c10::Error&) {  // the device has failed: the next call of it says so
  }
}

}  // namespace

StepProfile::StepProfile(int64_t warm_up, int64_t steps, Trace* trace)
    : warm_up_(warm_up), steps_(steps), trace_(trace) {
  profile_.warm_up_steps = warm_up;
  // What is measured allocates as little as can be while it goes.
  profile_.step_ns.reserve(static_cast<size_t>(steps));
}

void StepProfile::begin_run(const Setup& setup) {
  const RunData& data = setup.data;
  profile_.experiment = data.experiment.experiment.name;
  profile_.model = setup.model->id();
  profile_.source = data.source->id();
  profile_.device = setup.device.str();
  profile_.threads = data.threads;
  profile_.limit_bytes = memory_limit();
  if (setup.device.is_cuda()) device_index_ = setup.device.index();
}

void StepProfile::count(bool counts) {
  operators_->count(counts);
  calls_->count(counts);
}

void StepProfile::begin_step() {
  if (!is_warm() || done()) return;
  if (!operators_) {
    operators_.emplace(trace_);
    calls_.emplace(trace_);
  }
  in_step_ = true;
  phase_ = StepPhase::other;
  count(true);
  step_began_ = phase_began_ = now();
}

bool StepProfile::end_step(const StepEnd& end) {
  if (in_step_) {
    const Spent ended = now();
    leave_phase(ended);
    in_step_ = false;
    count(false);
    const Spent step = ended - step_began_;
    profile_.steps += step;
    profile_.step_ns.push_back(step.ns);
    profile_.samples += end.samples;
    profile_.micro_batch = end.micro_batch;
    if (trace_ != nullptr) trace_->add(SpanKind::step, "step", step_began_.ns, ended.ns);
  }
  ++windows_;
  if (windows_ <= warm_up_) read_before_ = end.read;
  if (!done()) return true;
  if (operators_) {
    profile_.operators = operators_->by_self_time();
    profile_.plugin_calls = calls_->by_time();
    profile_.reading = end.read - read_before_;
  }
  operators_.reset();
  calls_.reset();
  return false;
}

StepPhase StepProfile::enter(StepPhase phase) noexcept {
  const StepPhase before = phase_;
  note_checkpoint(before, phase);
  if (in_step_ && before != phase) {
    const Spent until = now();
    leave_phase(until);
    phase_began_ = until;
  }
  phase_ = phase;
  return before;
}

void StepProfile::leave_phase(const Spent& until) noexcept {
  profile_.phases[static_cast<size_t>(phase_)] += until - phase_began_;
  if (trace_ != nullptr) trace_->add(SpanKind::phase, step_phase_name(phase_), phase_began_.ns, until.ns);
}

// Most of them are written between two steps.
void StepProfile::note_checkpoint(StepPhase before, StepPhase after) noexcept {
  if (before == after) return;
  if (after == StepPhase::checkpoint) checkpoint_began_ns_ = steady_ns();
  if (before != StepPhase::checkpoint) return;
  ++profile_.checkpoints;
  profile_.checkpoint_ns += steady_ns() - checkpoint_began_ns_;
}

Spent StepProfile::now() const noexcept {
  if (device_index_ >= 0) wait_for_device(device_index_);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return {.ns = steady_ns(),
          .cpu_ns = nanoseconds(used.ru_utime) + nanoseconds(used.ru_stime),
          .minor_faults = used.ru_minflt,
          .major_faults = used.ru_majflt,
          .operators_ns = operators_ ? operators_->self_ns() : 0};
}

Profile StepProfile::result() const {
  Profile profile = profile_;
  profile.memory = read_ledger();
  if (trace_ != nullptr) profile.left_out_of_trace = trace_->left_out();
  return profile;
}

namespace {

// So that the run is there for that many windows, whatever else would end it, and tells nobody of itself.
void make_last(Experiment& experiment, int64_t windows) {
  TrainSection& train = experiment.train;
  // An epoch has one window at least, and with one more none that is measured is at the end of the last.
  train.epochs = std::max(train.epochs, windows + 1);
  if (train.max_steps > 0) train.max_steps = std::max(train.max_steps, windows + 1);
  train.early_stop.reset();
  experiment.eval.every_epochs = INT64_MAX;
  experiment.record.events_to.clear();
}

}  // namespace

Exit profile_run(ProfileRequest request, Profile& profile) {
  make_last(request.run.experiment, profile_warm_up_steps + request.steps);
  std::optional<Trace> trace;
  if (!request.trace.empty()) trace.emplace();
  StepProfile steps(profile_warm_up_steps, request.steps, trace ? &*trace : nullptr);
  request.run.watch = &steps;
  const Exit exit = train(request.run);
  if (!steps.done()) return exit;
  profile = steps.result();
  if (!trace) return Exit::ok;
  profile.trace = request.trace.string();
  trace->write(request.trace, "headroom " + profile.experiment);
  return Exit::ok;
}

}  // namespace headroom
