#include "train/loop.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/bad_values.hpp"
#include "train/signals.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;

const char* const stopping_line =
    "a checkpoint, and the end of this process (exit 75: resume when there is more memory)";

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool is_finite(const TrainStep::Gradients& gradients) {
  return std::isfinite(gradients.loss) && std::isfinite(gradients.norm);
}

int64_t total_steps(const TrainSection& train, int64_t windows_per_epoch) {
  const int64_t steps = train.epochs * windows_per_epoch;
  return train.max_steps > 0 ? std::min(train.max_steps, steps) : steps;
}

}  // namespace

TrainingLoop::TrainingLoop(const Setup& setup, LoaderInput input, const RunFolder& folder, RunLog& log,
                           RunMemory& memory)
    : setup_(setup),
      experiment_(setup.data.experiment),
      log_(log),
      memory_(memory),
      input_(std::move(input)),
      folder_(folder.path()),
      train_loader_(
          std::make_unique<Loader>(input_.source, setup.data.splits.train, input_.applied, setup.loader_options(true))),
      step_(setup, step_hooks()),
      eval_retry_(setup.micro_batch(), setup.device, setup.advice(),
                  [this](const Shortage& shortage, const std::string& action) { report_shortage(shortage, action); }),
      gc_points_(
          experiment_.memory, *setup.model, *input_.source, setup.device,
          [this](const char* what, int64_t returned_bytes, double seconds) {
            log_.event(
                "gc_point",
                {{"step", position_.step}, {"what", what}, {"returned_bytes", returned_bytes}, {"seconds", seconds}});
          }),
      is_new_(setup.data.ranks().comes_back),
      schedule_(experiment_.train.schedule, experiment_.train.optimizer.lr, setup.data.windows_per_epoch(),
                total_steps(experiment_.train, setup.data.windows_per_epoch())),
      checkpoints_(folder.path() / "checkpoints", experiment_.checkpoint.keep),
      metric_(experiment_.experiment.metric) {
  if (setup.data.splits.val.length() > 0) {
    val_loader_ =
        std::make_unique<Loader>(input_.source, setup.data.splits.val, input_.applied, setup.loader_options(false));
    make_examples();
  } else if (metric_.starts_with("val/")) {
    // The default, val/loss, has to work without a validation split too.
    metric_ = "train/" + metric_.substr(4);
    log_.say("no validation split: experiment.metric is " + metric_);
  }
  lower_is_better_ = setup.lower_wins(metric_);
  judge_by_metric();
  register_rungs();
}

void TrainingLoop::make_examples() {
  if (val_loader_ == nullptr) return;
  examples_.emplace(folder_, setup_.output_pairs, setup_.model->outputs(), setup_.model->fields(),
                    setup_.data.splits.val.length());
}

StepHooks TrainingLoop::step_hooks() {
  return {
      .shortage = [this](const Shortage& shortage, const std::string& action) { report_shortage(shortage, action); },
      .loss_scale = [this](double was, double is) { report_loss_scale(was, is); },
      .phase = [this](Phase phase) { memory_.note(phase); },
      .wants_outputs =
          [this](const Batch& batch) {
            // Counted by its first sample, a batch has the same number in a retry and in a resumed run.
            return sample_.contains(batch.first / static_cast<uint64_t>(train_loader_->batch_size()));
          },
      .batch_done = [this] { gc_points_.train_batch_done(); }};
}

void TrainingLoop::register_rungs() {
  MicroBatch& micro_batch = step_.retry().micro_batch();
  // A fixed one stays: the file wants equal bits at any limit, or the model cannot be divided.
  if (micro_batch.adapts()) {
    smaller_batches_ = add_rung({.name = "smaller micro-batches",
                                 .order = 400,
                                 .tighten = [&micro_batch] { micro_batch.shrink_and_hold(); },
                                 .relax = [&micro_batch] { micro_batch.allow_growth(); }});
  }
  // No relax(): a run that was told to stop stops.
  stop_ = add_rung({.name = stopping_line, .order = 500, .tighten = [this] { must_stop_ = true; }});
}

RunState TrainingLoop::state() {
  return {setup_, step_.optimizer(), step_.epoch_sums(), step_.interval_sums(), position_, input_.measured};
}

void TrainingLoop::resume(const LoadedCheckpoint& checkpoint) {
  const Differences differences = differences_from(checkpoint, setup_);
  restore(checkpoint);
  if (position_.has_best && setup_.data.ranks().is_first()) checkpoints_.mend_best(position_.best_step);
  const auto& early = experiment_.train.early_stop;
  // With more patience, or none to run out of, a run that was stopped early goes on.
  position_.stopped_early = position_.stopped_early && early && position_.stale_evaluations >= early->patience;
  report_resume(differences);
  const auto is_kept = [](const OutputPair& pair) { return !pair.classes; };
  if (experiment_.metrics.mode == "full" && std::ranges::any_of(setup_.output_pairs, is_kept) &&
      position_.samples > 0) {
    log_.say(
        "metrics.mode = \"full\" keeps nothing in checkpoints: this epoch's metrics of outputs are of what comes "
        "from here on");
  }
}

void TrainingLoop::restore(const LoadedCheckpoint& checkpoint) {
  // What the logs got after the checkpoint is written again.
  log_.truncate(restore_state(checkpoint, state()));
  bad_before_ = position_.bad_samples;
  judge_by_metric();
  step_.restore(position_);
  eval_retry_.micro_batch().begin_at(position_.eval_micro_batch);
}

void TrainingLoop::begin_with(const PlannedStart& planned) {
  predicted_peak_bytes_ = planned.predicted_peak_bytes;
  step_.retry().micro_batch().restore(planned.micro_batch);
  step_.recompute().restore(planned.recompute);
  eval_retry_.micro_batch().begin_at(planned.evaluation_micro_batch);
}

LoaderTimes TrainingLoop::loader_times() const {
  LoaderTimes times = earlier_times_;
  times += train_loader_->times();
  if (val_loader_ != nullptr) times += val_loader_->times();
  return times;
}

double TrainingLoop::seconds() const { return since(run_started_); }

// Epoch after epoch: train, evaluate, compare with the best, save. What stops it in between saves where it is, and a
// resumed run goes on there, bit for bit.
Exit TrainingLoop::run() {
  run_started_ = started_ = saved_ = Clock::now();
  const WatchScope watched(watch_);
  if (watch_ != nullptr) watch_->begin_run(setup_);
  train_loader_->seek(static_cast<uint64_t>(position_.epoch), position_.samples, /*continuous=*/true);
  report_memory();
  if (!outlives_losses()) return train_to_end();
  for (bool has_begun = false;;) {
    try {
      if (!std::exchange(has_begun, true)) is_new_ ? rejoin() : agree();
      return train_to_end();
    } catch (const RankLost&) {
      go_on_with_those_left();
    }
  }
}

Exit TrainingLoop::train_to_end() {
  while (!done() || owes_an_evaluation()) {
    // finish_epoch() has saved.
    if (until_epoch_ > 0 && position_.epoch >= until_epoch_) return Exit::resumable;
    if (!train_epoch() || !evaluate_epoch()) {
      agree();
      save(false);
      return stop_reason();
    }
    finish_epoch();
    if (!done()) lend_memory();
  }
  return Exit::ok;
}

bool TrainingLoop::train_epoch() {
  const uint64_t samples = setup_.data.samples_per_epoch();
  memory_.note(position_.step, position_.epoch + 1, step_.retry().size());
  sample_ = setup_.metric_sample(*train_loader_, /*training=*/true, position_.epoch);
  log_.begin_epoch("train", position_.epoch, experiment_.train.epochs, setup_.data.windows_per_epoch(), windows_done());
  interval_samples_ = 0;
  interval_started_ = Clock::now();
  // Signals, pressure and checkpoints have their turn between two windows, where the state is whole.
  while (position_.samples < samples && !done()) {
    if (stop_reason() != Exit::ok) return false;
    const uint64_t first = position_.samples;
    if (watch_ != nullptr) watch_->begin_step();
    step_meter_.begin();
    const bool stepped = train_window();
    step_meter_.end();
    owes_agreement_ = stepped;
    agree();
    if (std::exchange(owes_agreement_, false)) save_when_due();
    memory_.judge();
    if (memory_.is_short()) gc_points_.pressure();
    if (const auto leak = leaks_.after_window(read_ledger())) log_.say(*leak);
    if (watch_ != nullptr) end_watched_step(first);
  }
  // train.max_steps ended the run within the epoch.
  if (position_.samples < samples) return true;
  require_a_step();
  train_loader_->next();  // the epoch's end; reading ahead goes on into the next
  return true;
}

void TrainingLoop::end_watched_step(uint64_t first_sample) {
  const bool goes_on = watch_->end_step({.samples = static_cast<int64_t>(position_.samples - first_sample),
                                         .micro_batch = step_.retry().size(),
                                         .read = loader_times()});
  must_stop_ = must_stop_ || !goes_on;
}

int64_t TrainingLoop::windows_done() const {
  const auto window = static_cast<uint64_t>(setup_.data.window_samples());
  // The last window of an epoch may be shorter.
  return static_cast<int64_t>((position_.samples + window - 1) / window);
}

// The gradients of one window, then one optimizer step. Everything before `essential` can be taken back: where others
// take the memory, the window is as if it had not begun. After it nothing may fail for lack of memory.
bool TrainingLoop::train_window() try {
  WindowBatches batches(*train_loader_, static_cast<uint64_t>(position_.epoch), position_.samples, end_of_window());
  const TrainStep::Gradients gradients = step_.accumulate(batches, position_.step);
  const bool counts = !(gradients.weight <= 0);  // NaN comes of data, or of the loss
  return finish_window(gradients, counts && !is_finite(gradients) ? bad_value_in(batches) : "");
} catch (const TakenByOthers& taken) {
  stop_for(taken);
  return false;
}

uint64_t TrainingLoop::end_of_window() const {
  return std::min(position_.samples + static_cast<uint64_t>(setup_.data.window_samples()),
                  setup_.data.samples_per_epoch());
}

bool TrainingLoop::finish_window(const TrainStep::Gradients& gradients, const std::string& bad_value) {
  const EssentialAllocations essential;  // from here on the step is taken as a whole
  had_weight_ = had_weight_ || !(gradients.weight <= 0);
  (void)step_.take_prepared();
  position_.samples = end_of_window();
  ++transitions_;
  interval_samples_ += gradients.samples;
  if (gradients.weight <= 0) {
    ++position_.skipped_windows;
    return false;
  }
  if (!is_finite(gradients)) {
    ++position_.skipped_windows;
    report_not_finite(gradients.loss, gradients.norm, bad_value);
    // A running mean that has taken up one NaN would keep it for good.
    step_.leave_out();
    return false;
  }
  const double lr = schedule_.at(position_.step, position_.plateau_drops);
  memory_.note(Phase::optimizer);
  step_.apply(lr, position_.step);
  ++position_.step;
  memory_.note(position_.step, position_.epoch + 1, step_.retry().size());
  report_step(gradients.loss, lr, gradients.norm);
  gc_points_.step_done(position_.step);
  return true;
}

void TrainingLoop::stop_for(const TakenByOthers& taken) {
  const std::string line = taken.what() + std::string(": ") + stopping_line;
  log_.say(line);
  log_.event("pressure", {{"sentence", line}});
  must_stop_ = true;
}

// The window is read again for it. The loader stands at the window's end again afterwards.
std::string TrainingLoop::bad_value_in(WindowBatches& batches) {
  std::string found;
  // Once: reading a window twice costs time, and under on_nonfinite = "skip" there may be many such windows.
  if (std::exchange(looked_for_bad_value_, true)) return found;
  const char* doing = "looking for what is not finite";
  Shortage shortage;
  batches.rewind();
  // It only explains: where memory is short it ends unsaid, and the window as it would without it.
  const bool fits = attempt_within_memory(shortage, doing, 0, [&] {
    while (const auto batch = batches.next()) {
      const auto bad = find_bad_value(setup_.data.source->fields(), batch->fields);
      if (bad && found.empty())
        found = bad->text + ", in " + setup_.data.splits.train.place_of(batch->index[bad->sample]);
    }
  });
  if (!fits) batches.skip();
  return first_found(found);
}

// A run without steps would end as if all were well. One epoch alone may hold nothing that counts.
void TrainingLoop::require_a_step() const {
  if (position_.step > 0 || position_.epoch + 1 < std::min<int64_t>(2, experiment_.train.epochs)) return;
  const std::string found =
      "epoch " + std::to_string(position_.epoch + 1) + " ended and no optimizer step has been taken: ";
  if (had_weight_) throw Error(Exit::diverged, "train", found + "no window had a finite loss and finite gradients");
  throw Error(Exit::data, "train",
              found +
                  "the model's weight was 0 in every window, so no element counts: look at masks and padding, and "
                  "at samples that were left out");
}

void TrainingLoop::finish_epoch() {
  memory_.note(Phase::epoch_end);
  report_epoch();
  // Once a run: later epochs would mostly say the same.
  if (position_.epoch == 0) report_without_gradient();
  const bool is_best = compare_with_best();
  judge_plateau();
  // Saved below: a run that is resumed after this does not evaluate the epoch again.
  position_.finished_step = position_.step;
  ++transitions_;
  is_measured_ = false;
  if (position_.samples >=
      setup_.data.samples_per_epoch()) {  // otherwise train.max_steps ended the run within the epoch
    ++position_.epoch;
    position_.samples = 0;
    step_.epoch_sums().zero();
    step_.interval_sums().zero();
  }
  judge_early_stop();
  gc_points_.epoch_done();
  memory_.settle(/*epoch_done=*/true);
  save(is_best);
}

bool TrainingLoop::done() const {
  const TrainSection& train = experiment_.train;
  return position_.stopped_early || position_.epoch >= train.epochs ||
         (train.max_steps > 0 && position_.step >= train.max_steps);
}

bool TrainingLoop::owes_an_evaluation() const {
  return position_.samples > 0 && position_.finished_step != position_.step;
}

void TrainingLoop::save_when_due() {
  const CheckpointSection& section = experiment_.checkpoint;
  const bool by_steps = section.every_steps > 0 && position_.step % section.every_steps == 0;
  const bool by_time = section.every_minutes > 0 && since(saved_) >= 60.0 * section.every_minutes;
  if (by_steps || by_time) save(false);
}

void TrainingLoop::save(bool is_best) {
  const PhaseScope saving(StepPhase::checkpoint);
  position_.bad_samples = bad_before_ + skipped_samples();
  // Of all processes of the run together.
  position_.train_seconds += since(started_);
  started_ = Clock::now();
  saved_transitions_ = transitions_;
  saved_best_ = is_best;
  log_.event("checkpoint", {{"step", position_.step}, {"best", is_best}});
  // Every rank holds the state; one writes it.
  if (setup_.data.ranks().is_first()) write_checkpoint(is_best);
  saved_ = Clock::now();
}

void TrainingLoop::write_checkpoint(bool is_best) {
  const int64_t removed = checkpoints_.removed_for_room();
  write_state(checkpoints_, is_best);
  if (removed == 0 && checkpoints_.removed_for_room() > 0)
    log_.say(
        "fewer checkpoints are kept than checkpoint.keep says: the run folder lies in memory (tmpfs), which has no "
        "room for more");
  // A checkpoint on a tmpfs has taken memory that the next window may want.
  memory_.look_again();
}

std::filesystem::path TrainingLoop::write_state(Checkpoints& checkpoints, bool is_best) {
  // The checkpoint holds the lengths of the logs: up to there they have to be on the disk before it is.
  log_.sync();
  memory_.note(Phase::checkpoint);
  step_.note_in(position_);
  position_.eval_micro_batch = eval_retry_.size();
  position_.reserved_bytes = memory_.reserved_bytes();
  const EssentialAllocations essential;  // the little that it takes is there when memory is short
  std::filesystem::path written;
  with_one_retry("writing a checkpoint", Owner::checkpoint, setup_.device, setup_.advice(),
                 [&] { written = save_state(checkpoints, state(), log_.lengths(), is_best); });
  return written;
}

}  // namespace headroom
