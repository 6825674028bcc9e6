#include "train/train.hpp"

#include "memory/code_pages.hpp"
#include "memory/supervised.hpp"
#include "ranks/group.hpp"
#include "ranks/members.hpp"
#include "record/postmortem.hpp"
#include "record/run_folder.hpp"
#include "train/announce.hpp"
#include "train/class_balance.hpp"
#include "train/differences.hpp"
#include "train/inert_weights.hpp"
#include "train/init.hpp"
#include "train/loop.hpp"
#include "train/rank_start.hpp"
#include "train/run_summary.hpp"
#include "train/signals.hpp"

namespace headroom {

namespace {

// A run that is resumed.
struct EarlierRun {
  RunFolder folder;
  std::optional<LoadedCheckpoint> last;  // nullopt: it was stopped before its first
};

bool comes_back(const TrainRequest& request) { return request.group != nullptr && request.group->ranks().comes_back; }

std::optional<LoadedCheckpoint> last_checkpoint(const std::filesystem::path& run) {
  const auto checkpoints = run / "checkpoints";
  if (const auto last = Checkpoints(checkpoints).last()) return load_checkpoint(*last);
  if (std::filesystem::is_symlink(checkpoints / "last")) load_checkpoint(checkpoints / "last");  // says what is wrong
  return std::nullopt;
}

std::optional<EarlierRun> open_earlier_run(const TrainRequest& request) {
  if (!request.resume) return std::nullopt;
  // One process of a run holds its lock.
  const bool first = request.group == nullptr || request.group->is_first();
  RunFolder folder = first ? RunFolder::open(*request.resume) : RunFolder::shared(run_path(*request.resume));
  // One that comes back is handed the state as it is then; the files here change meanwhile.
  std::optional<LoadedCheckpoint> last = comes_back(request) ? std::nullopt : last_checkpoint(folder.path());
  return EarlierRun{std::move(folder), std::move(last)};
}

std::optional<PlannedStart> plan_of(const TrainRequest& request, const RunData& data) {
  // A resumed run goes on with the micro-batch of its checkpoint.
  return request.plan && !request.resume ? request.plan(data) : std::nullopt;
}

// All that the run is known to take; 0: unknown. A run that goes on has no plan: it claims what it had reserved, so
// that another one does not start in the same memory.
int64_t wanted_bytes(const std::optional<PlannedStart>& planned, const LoadedCheckpoint* checkpoint) {
  if (planned) return planned->wanted_bytes;
  return checkpoint != nullptr ? reserved_bytes_in(checkpoint->json) : 0;
}

// The file of [init] may be gone by the time its run is resumed: then the checkpoint says what it held.
std::string init_id_of(const Experiment& experiment, const LoadedCheckpoint* checkpoint) {
  return checkpoint != nullptr ? checkpoint->at("init_id", nlohmann::json::value_t::string).get<std::string>()
                               : start_id(experiment.init);
}

void write_head(const RunFolder& folder, const RunData& data, const std::filesystem::path& folder_to) {
  tell_supervisor_run_folder(folder.path());
  if (!data.ranks().is_first()) return;
  // An earlier one would be taken for this run's.
  forget_postmortem(folder.path());
  forget_first_rank(folder.path());
  write_file_atomically(folder.path() / "experiment.toml", data.resolved_toml());
  write_file_atomically(folder.path() / "splits.json", json_text(data.splits.json(), 1) + "\n");
  // Last: whoever reads it finds a run there.
  folder.tell(folder_to);
}

void watch_memory(RunMemory& memory, const std::filesystem::path& folder, RunLog& log) {
  memory.watch(
      folder / black_box_file, [&log](const std::string& line) { log.say(line); },
      [&log](const std::string& line) {
        log.say(line);
        log.event("pressure", {{"sentence", line}});
      });
}

// Of the checkpoint where there is one: a resumed run goes on with what it began with.
Normalizer normalizer_of(const Setup& setup, const LoadedCheckpoint* checkpoint, RunLog& log) {
  if (checkpoint != nullptr) return Normalizer::from_json(checkpoint->at("normalizer", nlohmann::json::value_t::array));
  FoundStatistics found;
  with_one_retry("measuring the normalisation", Owner::batches, setup.device, setup.advice(),
                 [&] { found = find_statistics(setup.data.statistics_request()); });
  for (const std::string& line : found.lines) log.say(line);
  return std::move(found.normalizer);
}

// Measuring may read the whole split: what one rank measures and keeps, the others find.
LoaderInput input_of(const Setup& setup, const LoadedCheckpoint* checkpoint, RunLog& log) {
  const auto make = [&] {
    return loader_input(setup.data, normalizer_of(setup, checkpoint, log),
                        [&log](const std::string& line) { log.say(line); });
  };
  return setup.data.group != nullptr ? setup.data.group->first_goes_first(make) : make();
}

void begin(TrainingLoop& loop, const Setup& setup, const std::optional<PlannedStart>& planned, RunLog& log) {
  // A run that was stopped before its first checkpoint begins anew, and so do its logs.
  log.truncate(nlohmann::json::object());
  if (planned) loop.begin_with(*planned);
  log.event("start", {{"name", setup.data.experiment.experiment.name}, {"identity", setup.identity()}});
}

// What ends the loop is written down before it is thrown on.
Exit run_loop(TrainingLoop& loop, const Setup& setup, const RunFolder& folder, RunLog& log, const RunMemory& memory) {
  try {
    const Exit exit = or_give_up("the run", setup.advice(), [&] { return loop.run(); });
    memory.note(Phase::finished);
    return exit;
  } catch (const Error& problem) {
    if (speaks_for_all(setup.data)) record_failure(setup, loop, folder, log, problem);
    memory.note(Phase::finished);
    throw;
  }
}

}  // namespace

Exit train(const TrainRequest& request) {
  const Experiment& experiment = request.experiment;
  install_stop_signals();
  const RunData data =
      // First: a run that cannot begin leaves no folder.
      prepare_data_of_ranks(experiment, request.plugin_dirs, request.group);

  std::optional<EarlierRun> earlier = open_earlier_run(request);
  const LoadedCheckpoint* checkpoint = earlier && earlier->last ? &*earlier->last : nullptr;
  const std::optional<PlannedStart> planned = plan_of(request, data);
  RunMemory memory(experiment, planned ? planned->needed_bytes : 0, wanted_bytes(planned, checkpoint),
                   planned ? planned->waited_seconds : 0, data.ranks().local_count);
  if (memory.cancelled()) return stop_requested();

  const Setup setup(data, init_id_of(experiment, checkpoint));
  require_divisible(setup);
  const bool has_state = checkpoint != nullptr || comes_back(request);
  const std::string started = has_state ? "" : initialise_from(experiment.init, *setup.model);
  const std::string moved = move_inert_weights_to_disk(setup.model->parameters());
  if (checkpoint != nullptr && !request.changed)
    require_same_mathematics(differences_from(*checkpoint, setup), earlier->folder.path());

  // After the last check: a run that is refused leaves no folder, or the earlier one as it was.
  const RunFolder folder = earlier ? std::move(earlier->folder) : make_run_folder(request.out, data);
  write_head(folder, data, request.folder_to);
  RunLog log = data.ranks().is_first() ? RunLog(folder, experiment.train.log_every)
               : data.is_elastic()     ? RunLog::standby()
                                       : RunLog();
  if (!experiment.record.events_to.empty()) log.send_events_to(experiment.record.events_to);
  announce(setup, log);
  for (const std::string& line : rank_lines(setup, request.resume.has_value())) log.say(line);
  log.say(memory.line());
  if (planned) log.say(planned->line);
  if (!moved.empty()) log.say(moved);
  watch_memory(memory, folder_of_rank(folder, data), log);

  // Measuring may read the whole split, so it comes after the log and the black box.
  LoaderInput input = input_of(setup, checkpoint, log);
  if (!started.empty()) log.say("init: " + started);
  // What a model made of it before is in the checkpoint.
  if (!has_state) {
    with_one_retry("counting the classes", Owner::batches, setup.device, setup.advice(),
                   [&] { balance_classes(setup, [&log](const std::string& line) { log.say(line); }); });
  }
  std::optional<TrainingLoop> loop;
  with_one_retry("gradients and the optimizer's state", Owner::metrics, setup.device, setup.advice(),
                 [&] { loop.emplace(setup, input, folder, log, memory); });
  loop->stop_after(request.until_epoch);
  loop->watch_steps(request.watch);
  if (checkpoint != nullptr) loop->resume(*checkpoint);
  if (!has_state) begin(*loop, setup, planned, log);
  earlier.reset();  // its files are mapped
  require_same_weights(setup);
  drop_code_pages();  // of the start

  const Exit exit = run_loop(*loop, setup, folder, log, memory);
  if (request.group != nullptr) request.group->leave();
  if (request.watch == nullptr && data.ranks().is_first()) conclude(setup, *loop, folder, log, exit);
  return exit;
}

}  // namespace headroom
