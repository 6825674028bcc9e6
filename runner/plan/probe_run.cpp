#include <algorithm>
#include <chrono>

#include "arrays/thread_buffer.hpp"
#include "data/cache_session.hpp"
#include "data/slots.hpp"
#include "memory/arena.hpp"
#include "memory/budget.hpp"
#include "memory/limits.hpp"
#include "memory/monitor.hpp"
#include "memory/process_memory.hpp"
#include "memory/readable.hpp"
#include "memory/reservations.hpp"
#include "memory/supervised.hpp"
#include "plan/probe.hpp"
#include "train/evaluate.hpp"
#include "train/inert_weights.hpp"
#include "train/state.hpp"
#include "train/train_step.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t largest_micro_batch = 16;
constexpr uint64_t most_samples_judged = 1 << 20;  // of a split, evenly spaced, when looking for the costliest
constexpr int least_windows = 3, most_windows = 6;
constexpr double most_seconds = 20.0;  // of windows at one micro-batch, beyond the least

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

int64_t room_for_us() {
  Rooms rooms = read_rooms();
  set_aside(rooms, other_runs());
  return decide_limit("auto", rooms).bytes.value_or(0);
}

// Under a limit below what is held already, the first allocation would fail, wherever that is.
void require_room(int64_t room_bytes) {
  const int64_t held = held_bytes();
  if (room_bytes == 0 || held < room_bytes - cushion_bytes(room_bytes)) return;
  throw Error(Exit::does_not_fit, "plan",
              "a probe holds " + size_text(held) + " before it begins, and other processes leave it " +
                  size_text(room_bytes) + ": see `headroom limits`");
}

// The `count` samples of a split that say they cost most, as a split of their own; the first ones where none says.
Split costliest(const Source& source, const Split& split, uint64_t count) {
  const uint64_t step = std::max<uint64_t>(1, split.length() / most_samples_judged);
  std::vector<std::pair<double, uint64_t>> costs;
  for (uint64_t i = 0; i < split.length(); i += step) {
    const uint64_t index = split.source_index(i);
    costs.emplace_back(-source.cost(split.source_split(), index), index);
  }
  const size_t kept = std::min<size_t>(costs.size(), count);
  // Costs are negated, so the costliest come first; of equal costs, the first sample.
  std::partial_sort(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(kept), costs.end());
  costs.resize(kept);
  std::vector<Group> groups;
  for (const auto& cost : costs) groups.push_back({"", cost.second, 1});
  return {split.name(), split.source_split(), groups};
}

// The first step that trains every parameter.
int64_t first_step_of_all(std::span<const Parameter> parameters) {
  int64_t step = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.trains()) step = std::max(step, parameter.frozen_until_step);
  }
  return step;
}

std::vector<int64_t> bytes_of(const std::vector<Field>& fields) {
  std::vector<int64_t> bytes;
  for (const Field& field : fields) bytes.push_back(field.bytes());
  return bytes;
}

// A run in small, at one micro-batch after the other.
class ProbeRun {
 public:
  ProbeRun(const Setup& setup, int64_t room_bytes, Probe& probe, Monitor& monitor, const fs::path& folder)
      : setup_(setup),
        room_bytes_(room_bytes),
        monitor_(monitor),
        probe_(probe),
        most_(std::min({largest_micro_batch, setup.data.window_samples(),
                        static_cast<int64_t>(setup.data.splits.train.length())})),
        // Samples for two batches of the largest size: see accumulate().
        train_(costliest(*setup.data.source, setup.data.splits.train, static_cast<uint64_t>(2 * largest_micro_batch))),
        val_(costliest(*setup.data.source, setup.data.splits.val, static_cast<uint64_t>(2 * largest_micro_batch))),
        step_(setup, {.wants_outputs = [&setup](const Batch&) { return !setup.output_pairs.empty(); }}),
        eval_retry_(setup.micro_batch(), setup.device, setup.advice(), [](const Shortage&, const std::string&) {}),
        step_number_(first_step_of_all(setup.model->parameters())),
        checkpoints_(folder / "checkpoints") {}

  void run() {
    probe_.built_bytes = setup_.built_bytes;
    probe_.base_bytes = own_held_bytes();
    // Samples that are coupled may need company: a batch norm over one value fails.
    const bool coupled = (setup_.model->capabilities() & HR_COUPLES_SAMPLES) != 0;
    for (int64_t size = coupled ? 2 : 1; size <= std::min<int64_t>(most_, coupled ? 4 : 2); size *= 2) {
      if (!measure(size)) return;
    }
    if (probe_.points.empty()) {
      measure(most_);
      return;
    }
    for (int64_t size = largest_micro_batch; size > probe_.points.back().micro_batch; size /= 2) {
      if (size > most_ || expected_at(size) > room_bytes_ / 2) continue;
      measure(size);
      return;
    }
  }

 private:
  // Once there are gradients and the optimizer's state.
  void note_base() {
    let_go();
    probe_.base_bytes = own_held_bytes();
  }

  void let_go() {
    setup_.model->trim(HR_TRIM_CACHES);
    setup_.data.source->trim(HR_TRIM_CACHES);
    purge_tensor_memory(setup_.device);
    purge_heap();
  }

  // What would be held at that size if all above the base grew in proportion.
  int64_t expected_at(int64_t size) const {
    const ProbePoint& last = probe_.points.back();
    const int64_t growth = last.held_bytes.back() - probe_.base_bytes;
    const int64_t slots = slots_bytes(size);
    return probe_.base_bytes + growth * size / last.micro_batch + slots;
  }

  // Of what was read ahead and cached only as much as a probe needs. Which readers decode is chance.
  static int64_t held_by_work(const LedgerReading& ledger) {
    return ledger.held_bytes - ledger.live(Owner::batches) - ledger.live(Owner::cache) - ledger.live(Owner::reads) -
           ledger.live(Owner::workers);
  }

  // Of all loaders, with batches of `size` samples.
  int64_t slots_bytes(int64_t size) const {
    const int64_t batch_bytes = slot_bytes(probe_.field_bytes, size);
    const size_t slots = slot_count(setup_.loader_options(true), batch_bytes) +
                         (val_.length() > 0 ? slot_count(setup_.loader_options(false), batch_bytes) : 0);
    return static_cast<int64_t>(slots) * batch_bytes;
  }

  // False when memory ran out on the way: then there is no point for this size, nor for larger ones.
  bool measure(int64_t size) {
    // What the size before left in caches and free lists would hide what this one needs.
    let_go();
    // They adapt, so a shortage halves them and the phases go on; the counts below tell of it.
    step_.retry().micro_batch() = eval_retry_.micro_batch() = MicroBatch(size, /*adapts=*/true);
    try {
      ProbePoint point{size, {}};
      go_through(point);
      if (step_.retry().counts().repeated + eval_retry_.counts().repeated > 0) {
        probe_.shortage = "memory ran out at a micro-batch of " + std::to_string(size);
        return false;
      }
      probe_.points.push_back(point);
      if (probe_.points.size() == 1) note_base();
      return true;
    } catch (const Error& problem) {
      // Resumable: TakenByOthers.
      if (problem.exit_code() != Exit::does_not_fit && problem.exit_code() != Exit::resumable) throw;
      probe_.shortage = problem.what();
    } catch (const std::bad_alloc&) {
      probe_.shortage = "no memory for a micro-batch of " + std::to_string(size);
    } catch (const c10::OutOfMemoryError&) {
      probe_.shortage = "no memory for a micro-batch of " + std::to_string(size);
    }
    return false;
  }

  // Such as a source keeps for its readers: it started one to open the data.
  bool has_children() const { return monitor_.largest_child_bytes() > 0; }

  // Child processes grow between two looks at them, all at once. So one thread of each loader reads until the first
  // point tells what a child holds, and then as many as half of what is left has room for.
  int readers(int wanted) const {
    if (wanted <= 1 || !has_children()) return wanted;
    if (probe_.points.empty()) return 1;
    const int64_t room = std::max<int64_t>(0, room_bytes_ - held_bytes()) / 2;
    return static_cast<int>(std::clamp<int64_t>(room / (2 * monitor_.largest_child_bytes()), 1, wanted));
  }

  LoaderOptions options(bool training, int64_t size) const {
    LoaderOptions options = setup_.loader_options(training);
    options.num_workers = readers(options.num_workers);
    options.batch_size = size;
    options.samples_per_epoch = -1;
    options.epochs = -1;
    // Every window sees the same samples, the costliest first.
    options.shuffle = Shuffle::sequential;
    options.keep_samples.reset();
    return options;
  }

  void go_through(ProbePoint& point) {
    const OwnerScope scope(Owner::activations);  // as in a run, and not as in the set-up that this is called from
    const int64_t size = point.micro_batch;
    Loader train(setup_.data.source, train_, Normalizer(), options(true, size));
    std::unique_ptr<Loader> val;
    if (val_.length() > 0) val = std::make_unique<Loader>(setup_.data.source, val_, Normalizer(), options(false, size));
    if (val && !has_children()) val->seek(0);  // it reads ahead, as in a run
    level_ = 0;
    // Phases are numbered as in probe_phases.
    const auto note = [&](size_t phase) {
      level_ = std::max(level_, held_by_work(read_ledger()));
      point.held_bytes[phase] = level_;
    };
    const auto began = Clock::now();
    int64_t before = 0;
    take_recent_peak(Owner::activations);
    for (int i = 0; i < most_windows; ++i) {
      accumulate(train);
      note(0);
      step();
      note(1);
      // Less than half a percent more: the memory that windows use again is there.
      const bool settled = level_ - before < level_ / 200;
      before = level_;
      if (i + 1 >= least_windows && (settled || since(began) > most_seconds)) break;
    }
    if (setup_.device.is_cpu()) point.training_activation_bytes = take_recent_peak(Owner::activations);
    if (val) evaluate_some(*val);
    if (val && setup_.device.is_cpu()) point.evaluation_activation_bytes = take_recent_peak(Owner::activations);
    note(2);
    (void)step_.epoch_sums().measured("train", setup_.model->metrics());
    note(3);
    save_state(checkpoints_,
               {setup_, step_.optimizer(), step_.epoch_sums(), step_.interval_sums(), position_, normalizer_}, {},
               /*is_best=*/true);
    note(4);
    point.least_bytes = least_of_a_step(train, val.get());
    step_.epoch_sums().zero();
    monitor_.look_now();  // at the child processes of the readers, which end with these
  }

  int64_t least_of_a_step(Loader& train, Loader* val) {
    purge_heap();
    const arena::WithoutFreeLists tight;
    accumulate(train);
    step();
    if (val != nullptr) evaluate_some(*val);
    // In place of what tensors hold now, the most that they held within the step.
    return held_by_work(read_ledger()) - tight.now_bytes() + tight.peak_bytes();
  }

  // Two batches where there are as many samples: the second adds to gradients that are there.
  void accumulate(Loader& loader) {
    const auto samples = std::min<uint64_t>(train_.length(), static_cast<uint64_t>(2 * loader.batch_size()));
    const int64_t metrics_before = read_ledger().live(Owner::metrics);
    loader.seek(0, 0, /*continuous=*/true);
    WindowBatches batches(loader, 0, 0, samples);
    gradients_ = step_.accumulate(batches, step_number_);
    if (setup_.data.experiment.metrics.mode == "full" && gradients_.samples > 0)
      probe_.kept_bytes = (read_ledger().live(Owner::metrics) - metrics_before) / gradients_.samples;
  }

  // At a rate of 0: the model stays as it is.
  void step() {
    if (gradients_.weight > 0) step_.apply(0.0, step_number_);
  }

  void evaluate_some(Loader& loader) {
    const Optimizer::Averaged averaged(step_.optimizer());
    const auto sums = evaluate(setup_, loader, 0, eval_retry_, [](int64_t) { return false; });
    if (sums) (void)sums->measured("val", setup_.model->metrics());
  }

  const Setup& setup_;
  const int64_t room_bytes_;
  Monitor& monitor_;
  Probe& probe_;
  int64_t most_;
  Split train_, val_;
  TrainStep step_;
  Retry eval_retry_;
  int64_t step_number_;
  TrainStep::Gradients gradients_;  // of the last window
  Checkpoints checkpoints_;
  Position position_;
  Normalizer normalizer_;
  int64_t level_ = 0;
};

}  // namespace

Probe run_probe(const Experiment& experiment, const std::vector<fs::path>& plugin_dirs, const fs::path& folder) {
  const auto began = Clock::now();
  const int64_t room = room_for_us();
  require_room(room);
  // The limit is set before data and model take memory.
  set_memory_limit(room);
  raise_oom_score(probe_oom_rise);
  Monitor monitor(room);
  monitor.count_children();
  lift_start_limit();
  const RunData data = prepare_data(experiment, plugin_dirs);
  monitor.look_now();  // at the child process that the source may have
  const Setup setup(data);
  move_inert_weights_to_disk(setup.model->parameters());
  // It fills over an epoch, and shrinks before anything else does: the plan adds it.
  data.session->cache->blocks.set_limit(0);
  Probe probe;
  probe.train_samples = static_cast<int64_t>(data.samples_per_epoch());
  probe.val_samples = static_cast<int64_t>(data.splits.val.length());
  probe.field_bytes = bytes_of(data.source->fields());
  probe.indivisible_because = setup.indivisible_because();
  probe.chunk_bytes = static_cast<int64_t>(
      std::min(data.stored.compressed_bytes, static_cast<uint64_t>(experiment.data.chunk_cache_size_bytes)));
  probe.largest_chunk_bytes = static_cast<int64_t>(data.stored.largest_chunk_bytes);
  with_one_retry("gradients and the optimizer's state", Owner::metrics, setup.device, setup.advice(),
                 [&] { ProbeRun(setup, room, probe, monitor, folder).run(); });
  probe.reader_bytes = largest_reader_bytes();
  probe.worker_bytes = monitor.largest_child_bytes();
  probe.shares_workers = data.session->bounds_processes;
  probe.seconds = since(began);
  return probe;
}

}  // namespace headroom
