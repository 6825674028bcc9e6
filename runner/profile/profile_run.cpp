#include "profile/profile_run.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "profile/step_profile.hpp"

namespace headroom {

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
