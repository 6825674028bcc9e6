#include "train/train.hpp"

#include <cstdio>
#include <fstream>
#include <spdlog/spdlog.h>

#include "arrays/array_session.hpp"
#include "data/cache_session.hpp"
#include "data/data_report.hpp"
#include "memory/budget.hpp"
#include "memory/cores.hpp"
#include "memory/limits.hpp"
#include "memory/supervised.hpp"
#include "record/postmortem.hpp"
#include "record/run_folder.hpp"
#include "train/chosen_checkpoint.hpp"
#include "train/differences.hpp"
#include "train/loop.hpp"
#include "train/page_lock.hpp"
#include "train/precision.hpp"
#include "train/processor.hpp"
#include "train/rescue_record.hpp"
#include "train/signals.hpp"
#include "train/threads.hpp"

namespace headroom {

namespace {

int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

nlohmann::json scalars_json(const Scalars& values) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : values) json[name] = value;
  return json;
}

std::string state_name(Exit exit, const Position& position) {
  if (exit == Exit::ok) return position.stopped_early ? "stopped_early" : "finished";
  return exit == Exit::interrupted ? "interrupted" : "resumable";
}

ChunkCache::Statistics chunk_statistics(const Setup& setup) { return setup.session->arrays->chunks()->statistics(); }

nlohmann::json summary(const Setup& setup, const TrainingLoop& loop, const std::string& state) {
  const Position& p = loop.position();
  nlohmann::json best;
  if (p.has_best) {
    best = {{"metric", loop.metric()},
            {"value", p.best},
            {"better", setup.lower_wins(loop.metric()) ? "lower" : "higher"},
            {"epoch", p.best_epoch},
            {"step", p.best_step}};
  }
  nlohmann::json json = {
      {"state", state},
      {"identity", setup.identity()},
      {"content_id", setup.content_id},
      {"epochs", p.epoch},
      {"steps", p.step},
      {"skipped_windows", p.skipped_windows},
      {"bad_samples", p.bad_samples},
      {"best", best},
      {"metrics", scalars_json(p.measured.values)},
      {"channels", p.measured.channels},
      {"train_seconds", p.train_seconds},
      {"data", {{"loader", loader_json(loop.loader_times(), chunk_statistics(setup), setup.experiment->data)}}},
      {"peak_resident_bytes", peak_resident_bytes()},
      {"window_samples", setup.window_samples()},
      {"memory", loop.memory_json()},
      {"samples",
       {{"train", setup.splits.train.length()},
        {"val", setup.splits.val.length()},
        {"test", setup.splits.test.length()}}},
      {"device", setup.device.str()},
      {"threads", setup.threads},
      {"processor", processor_text()},
      {"precision", setup.experiment->train.precision},
      {"headroom", HEADROOM_VERSION},
      {"libtorch", TORCH_VERSION}};
  if (setup.experiment->data.cache_size_bytes > 0)
    json["data"]["cache"] = cache_json(setup.session->cache->blocks.statistics());
  if (setup.experiment->rescue) json["rescue"] = rescue_json(setup);
  return json;
}

std::string unit_of(const Setup& setup, const std::string& name) {
  for (const MetricInfo& metric : setup.metrics()) {
    if (name.ends_with("/" + metric.name)) return metric.unit;
  }
  return "";
}

// The run's result as people read it, on stdout.
void print_result(const Setup& setup, const TrainingLoop& loop, const RunFolder& folder, Exit exit) {
  const Position& p = loop.position();
  std::printf("%s: %lld steps, %lld epochs, %.1f s\n", state_name(exit, p).c_str(), static_cast<long long>(p.step),
              static_cast<long long>(p.epoch), p.train_seconds);
  for (const auto& [name, value] : p.measured.values) {
    std::printf("  %-24s %.6g %s\n", name.c_str(), value, unit_of(setup, name).c_str());
  }
  if (p.has_best) {
    std::printf("best %s %.6g at epoch %lld\n", loop.metric().c_str(), p.best, static_cast<long long>(p.best_epoch));
  }
  std::printf("%s\n", loop.memory_summary().c_str());
  const std::string loader =
      loader_line(loop.loader_times(), chunk_statistics(setup), loop.seconds(), setup.experiment->data, auto_threads());
  if (!loader.empty()) std::printf("%s\n", loader.c_str());
  for (const std::string& line : rescue_lines(setup)) std::printf("%s\n", line.c_str());
  std::printf("run folder: %s\n", folder.path().c_str());
  if (exit != Exit::ok) std::printf("go on with: headroom run --resume %s\n", folder.path().c_str());
}

// How much of a run the host's metrics see, where it is not simply all of it.
std::string metrics_line(const Setup& setup) {
  const MetricsSection& section = setup.experiment->metrics;
  if (section.mode == "online") return "";
  std::string names;
  for (const MetricInfo& metric : host_metrics(setup.output_pairs)) names += (names.empty() ? "" : ", ") + metric.name;
  if (names.empty()) return "metrics.mode: the model declares no prediction with a target for the host to measure";
  if (section.mode == "full") return "metrics: every output of an epoch is kept in memory for " + names;
  return "metrics: " + names + " on at most " + std::to_string(section.train_batches) + " training and " +
         std::to_string(section.eval_batches) + " evaluation batches, chosen evenly; the rest on all";
}

// data.pin_memory, where a GPU copies out of batches; a line for the log where it does nothing.
std::string pin_batches(const Setup& setup) {
  if (!setup.experiment->data.pin_memory) return "";
  if (!setup.device.is_cuda()) return "data.pin_memory: the model computes on the CPU, batches are not page-locked";
  if (lock_pages_of_batches()) return "";
  return "data.pin_memory: this LibTorch brings no CUDA runtime of its own, batches are not page-locked";
}

// How far this process may grow; 0: no bound is known.
int64_t room_bytes() {
  const Rooms rooms = read_rooms();
  const Room* smallest = rooms.smallest();
  const int64_t room = smallest != nullptr ? smallest->room_bytes : 0, limit = memory_limit();
  return limit > 0 && room > 0 ? std::min(limit, room) : std::max(limit, room);
}

// Keys the user set that do nothing yet, and what was decided for them, once.
void announce(const Setup& setup, RunLog& log) {
  for (const Inert& inert : setup.experiment->inert) log.say(inert.key + ": " + inert.why);
  if (const std::string line = metrics_line(setup); !line.empty()) log.say(line);
  for (const std::string& line : rescue_lines(setup)) log.say(line);
  const DataSection& data = setup.experiment->data;
  if (const std::string line = order_line(data, setup.order, setup.stored); !line.empty()) log.say(line);
  if (const std::string line = order_warning(data, setup.order); !line.empty()) log.say(line);
  if (const std::string line = workers_line(data, auto_threads()); !line.empty()) log.say(line);
  if (const std::string line = slow_precision(setup.experiment->train.precision, setup.device); !line.empty())
    log.say(line);
  CacheSetting cache = setup.cache_setting();
  cache.room_bytes = room_bytes();
  for (const std::string& line : cache_outlook(cache)) log.say(line);
  const auto& splits = setup.splits;
  log.say("data: " + std::to_string(splits.train.length()) + " training, " + std::to_string(splits.val.length()) +
          " validation, " + std::to_string(splits.test.length()) + " test samples; windows of " +
          std::to_string(setup.window_samples()) + ", " + std::to_string(setup.windows_per_epoch()) +
          " steps an epoch; " + std::to_string(setup.threads) + " threads on " + setup.device.str());
}

// The weights [init] names, in the model; what was taken, as a line for the log. "" without [init].
std::string start_from_weights(Setup& setup) {
  const InitSection& init = setup.experiment->init;
  setup.init_id = start_id(init);
  return init.from.empty() ? "" : initialise_from(init, *setup.model);
}

// nullopt: the run was stopped before its first.
std::optional<LoadedCheckpoint> last_checkpoint(const std::filesystem::path& run) {
  const auto checkpoints = run / "checkpoints";
  if (const auto last = Checkpoints(checkpoints).last()) return load_checkpoint(*last);
  if (std::filesystem::is_symlink(checkpoints / "last")) load_checkpoint(checkpoints / "last");  // says what is wrong
  return std::nullopt;
}

// What ended the run, where a later reader looks for it.
void record_failure(const Setup& setup, const TrainingLoop& loop, const RunFolder& folder, RunLog& log,
                    const Error& problem) {
  try {
    log.event("end",
              {{"state", "failed"}, {"exit_code", static_cast<int>(problem.exit_code())}, {"error", problem.what()}});
    log.sync();
    nlohmann::json json = summary(setup, loop, "failed");
    json["error"] = problem.what();
    write_summary(folder, std::move(json));
  } catch (const Error&) {  // the disk that is full, for one: the first problem is the one to tell
  }
}

}  // namespace

Exit train(const TrainRequest& request) {
  const Experiment& experiment = request.experiment;
  install_stop_signals();
  Setup setup = prepare_data(experiment, request.plugin_dirs);  // first: a run that cannot begin leaves no folder
  std::optional<PlannedStart> planned;
  if (request.plan && !request.resume) planned = request.plan(setup);
  RunMemory memory(experiment, planned ? planned->needed_bytes : 0, planned ? planned->wanted_bytes : 0);
  if (memory.cancelled()) return stop_requested();
  build_model(setup);
  std::string started;
  if (!request.resume) started = start_from_weights(setup);
  RunFolder folder =
      request.resume ? RunFolder::open(*request.resume) : RunFolder::create(request.out, experiment.experiment.name);
  std::optional<LoadedCheckpoint> checkpoint = request.resume ? last_checkpoint(folder.path()) : std::nullopt;
  if (checkpoint) {
    checkpoint->json.at("init_id").get_to(setup.init_id);  // the weights' file may be gone by now
    if (!request.changed) require_same_mathematics(differences_from(*checkpoint, setup), folder.path());
  }
  forget_postmortem(folder.path());
  tell_supervisor_run_folder(folder.path());
  write_file_atomically(folder.path() / "experiment.toml", setup.resolved_toml());

  RunLog log(folder, experiment.train.log_every);
  if (!experiment.record.events_to.empty()) log.send_events_to(experiment.record.events_to);
  announce(setup, log);
  if (const std::string line = pin_batches(setup); !line.empty()) log.say(line);
  log.say(memory.line());
  if (planned) log.say(planned->line);
  memory.watch(
      folder.path() / black_box_file, [&log](const std::string& line) { log.say(line); },
      [&log](const std::string& line) {
        log.say(line);
        log.event("pressure", {{"sentence", line}});
      });
  Normalizer normalizer;
  if (checkpoint) {
    normalizer = Normalizer::from_json(checkpoint->json.at("normalizer"));
  } else {
    FoundStatistics found;
    with_one_retry("measuring the normalisation", Owner::batches, setup.device, setup.advice(),
                   [&] { found = find_statistics(setup.statistics_request()); });
    for (const std::string& line : found.lines) log.say(line);
    normalizer = std::move(found.normalizer);
  }
  if (experiment.data.normalized_cache)
    read_normalized_copies(setup, normalizer, [&log](const std::string& line) { log.say(line); });
  if (request.resume && !checkpoint) started = start_from_weights(setup);
  if (!started.empty()) log.say("init: " + started);

  std::optional<TrainingLoop> made;
  with_one_retry("gradients and the optimizer's state", Owner::metrics, setup.device, setup.advice(),
                 [&] { made.emplace(setup, folder, log, memory, normalizer); });
  TrainingLoop& loop = *made;
  loop.stop_after(request.until_epoch);
  if (checkpoint) {
    loop.resume(*checkpoint);
    checkpoint.reset();
  } else {
    log.truncate(nlohmann::json::object());
    if (planned) loop.begin_with(*planned);
    log.event("start", {{"name", experiment.experiment.name}, {"identity", setup.identity()}});
  }
  Exit exit = Exit::ok;
  try {
    exit = or_give_up("the run", setup.advice(), [&] { return loop.run(); });
  } catch (const Error& problem) {
    record_failure(setup, loop, folder, log, problem);
    memory.note(Phase::finished);
    throw;
  }
  memory.note(Phase::finished);
  const std::string state = state_name(exit, loop.position());
  log.event("end", {{"state", state}});
  log.sync();
  write_summary(folder, summary(setup, loop, state));
  print_result(setup, loop, folder, exit);
  return exit;
}

namespace {

const Split& pick_split(const Setup& setup, const std::string& name) {
  const Split* split = setup.splits.find(name);
  if (split == nullptr || split->length() == 0) {
    throw Error(Exit::bad_input, "evaluate",
                "the data has no split '" + name + "' with samples: use train, val or test");
  }
  return *split;
}

}  // namespace

Exit evaluate_run(const EvaluateRequest& request) {
  const Experiment experiment = load_experiment(run_path(request.run) / "experiment.toml", request.overrides);
  install_stop_signals();
  const RunMemory memory(experiment, /*needed_bytes=*/0);
  if (memory.cancelled()) return stop_requested();
  Setup setup = prepare(experiment, request.plugin_dirs);
  const LoadedCheckpoint checkpoint = load_checkpoint(chosen_checkpoint(request.run, request.checkpoint, "evaluate"));
  restore_model(checkpoint, *setup.model, /*use_average=*/true);
  LoaderOptions options = setup.loader_options(false);
  options.keep_samples.reset();  // each is read once
  Loader loader(setup.source, pick_split(setup, request.split), Normalizer::from_json(checkpoint.json.at("normalizer")),
                options);
  const int64_t step = checkpoint.json.at("step");
  Retry retry(setup.micro_batch(), setup.device, setup.advice(),
              [](const Shortage& shortage, const std::string& action) {
                spdlog::warn("out of memory in {}, micro-batch {}: {}", shortage.doing, shortage.micro_batch, action);
              });
  const auto sums = evaluate(setup, loader, step, retry, [](int64_t) { return stop_requested() != Exit::ok; });
  if (!sums) return stop_requested();
  const auto [values, channels] = sums->measured(request.split, setup.model->metrics());
  if (request.json) {
    std::printf("%s\n", nlohmann::json{{"run", request.run.string()},
                                       {"split", request.split},
                                       {"step", step},
                                       {"metrics", scalars_json(values)},
                                       {"channels", channels}}
                            .dump(2)
                            .c_str());
    return Exit::ok;
  }
  for (const auto& [name, value] : values)
    std::printf("%-24s %.6g %s\n", name.c_str(), value, unit_of(setup, name).c_str());
  return Exit::ok;
}

Exit check_experiment(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs) {
  Setup setup = prepare(experiment, plugin_dirs);
  const std::string started = start_from_weights(setup);
  nlohmann::json fields = nlohmann::json::array();
  for (const Field& field : setup.source->fields()) {
    fields.push_back(
        {{"name", field.name}, {"dtype", dtype_name(field.dtype)}, {"shape", field.shape}, {"unit", field.unit}});
  }
  int64_t parameters = 0;
  for (const Parameter& parameter : setup.model->parameters()) {
    if (parameter.kind == HR_PARAMETER) parameters += parameter.tensor->numel();
  }
  nlohmann::json found = {{"fields", fields},
                          {"parameters", parameters},
                          {"identity", setup.identity()},
                          {"samples",
                           {{"train", setup.splits.train.length()},
                            {"val", setup.splits.val.length()},
                            {"test", setup.splits.test.length()}}}};
  if (!started.empty()) found["init"] = started;
  std::printf("%s\n", found.dump(2).c_str());
  return Exit::ok;
}

}  // namespace headroom
