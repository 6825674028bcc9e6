#include "train/run_summary.hpp"

#include <cstdio>
#include <fstream>

#include "arrays/array_session.hpp"
#include "config/rescue.hpp"
#include "data/cache_session.hpp"
#include "data/data_report.hpp"
#include "memory/budget.hpp"
#include "memory/cores.hpp"
#include "memory/readable.hpp"
#include "train/compute.hpp"

namespace headroom {

namespace {

int64_t peak_resident_bytes() {
  // proc(5): VmHWM is the peak of the resident set, in kB of 1024 bytes.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

std::string state_name(Exit exit, const Position& position) {
  if (exit == Exit::ok) return position.stopped_early ? "stopped_early" : "finished";
  return exit == Exit::interrupted ? "interrupted" : "resumable";
}

ChunkCache::Statistics chunk_statistics(const Setup& setup) {
  return setup.data.session->arrays->chunks()->statistics();
}

bool keeps(const Setup& setup, size_t rung) {
  return keeps_mathematics(*setup.data.experiment.rescue, rung,
                           (setup.model->capabilities() & HR_COUPLES_SAMPLES) != 0);
}

// Rungs of [rescue] that this run took; they are taken in order, so the first so many.
size_t taken(const Setup& setup) {
  const auto& rescue = setup.data.experiment.rescue;
  return rescue ? static_cast<size_t>(rescue->taken) : 0;
}

nlohmann::json rescue_json(const Setup& setup) {
  const auto& rescue = setup.data.experiment.rescue;
  if (!rescue) return nullptr;
  // One rung that changes the mathematics is enough to change those of the run.
  bool all_keep = true;
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < taken(setup); ++i) {
    list.push_back({{"set", rung_text(rescue->rungs[i])}, {"keeps_mathematics", keeps(setup, i)}});
    all_keep = all_keep && keeps(setup, i);
  }
  return {{"rungs", rescue->rungs.size()}, {"keeps_mathematics", all_keep}, {"taken", list}};
}

// Of a run that goes on without those that are killed.
nlohmann::json ranks_json(const Setup& setup, const TrainingLoop& loop) {
  const auto list = [](const std::vector<TrainingLoop::RankChange>& changes) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& [rank, step, time] : changes) all.push_back({{"rank", rank}, {"step", step}, {"time", time}});
    return all;
  };
  const Ranks ranks = setup.data.ranks();
  return {{"launched", ranks.launched_count},
          {"left", ranks.count},
          {"lost", list(loop.lost_ranks())},
          {"came_back", list(loop.returned_ranks())}};
}

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
      {"content_id", setup.data.content_id},
      {"epochs", p.epoch},
      {"steps", p.step},
      {"skipped_windows", p.skipped_windows},
      {"bad_samples", p.bad_samples},
      {"best", best},
      {"metrics", scalars_json(p.measured.values)},
      {"channels", p.measured.channels},
      {"classes", p.measured.classes},
      {"train_seconds", p.train_seconds},
      {"data", {{"loader", loader_json(loop.loader_times(), chunk_statistics(setup), setup.data.experiment.data)}}},
      {"peak_resident_bytes", peak_resident_bytes()},
      {"window_samples", setup.data.window_samples()},
      {"memory", loop.memory_json()},
      {"samples",
       {{"train", setup.data.splits.train.length()},
        {"val", setup.data.splits.val.length()},
        {"test", setup.data.splits.test.length()}}},
      {"device", setup.device.str()},
      {"threads", setup.data.threads},
      {"processor", processor_text()},
      {"matmul", setup.matmul.name()},
      {"precision", setup.data.experiment.train.precision},
      {"headroom", HEADROOM_VERSION},
      {"libtorch", TORCH_VERSION}};
  if (setup.data.experiment.data.cache_size_bytes > 0)
    json["data"]["cache"] = cache_json(setup.data.session->cache->blocks.statistics());
  if (setup.data.is_elastic()) json["ranks"] = ranks_json(setup, loop);
  if (setup.data.experiment.rescue) json["rescue"] = rescue_json(setup);
  return json;
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
  const std::string loader = loader_line(loop.loader_times(), chunk_statistics(setup), loop.seconds(),
                                         setup.data.experiment.data, auto_threads());
  if (!loader.empty()) std::printf("%s\n", loader.c_str());
  for (const std::string& line : rescue_lines(setup)) std::printf("%s\n", line.c_str());
  std::printf("run folder: %s\n", folder.path().c_str());
  // Stopped by a signal, by --until-epoch or for lack of memory.
  if (exit != Exit::ok)
    std::printf("go on with: headroom run --resume %s\n", shell_word(folder.path().string()).c_str());
}

}  // namespace

std::vector<std::string> rescue_lines(const Setup& setup) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < taken(setup); ++i) {
    const auto& rungs = setup.data.experiment.rescue->rungs;
    lines.push_back("rescue: rung " + std::to_string(i + 1) + " of " + std::to_string(rungs.size()) + " is taken, " +
                    rung_text(rungs[i]) +
                    (keeps(setup, i) ? ": the same mathematics" : ": this changes the mathematics"));
  }
  return lines;
}

nlohmann::json scalars_json(const Scalars& values) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : values) json[name] = value;
  return json;
}

std::string unit_of(const Setup& setup, const std::string& name) {
  for (const MetricInfo& metric : setup.metrics()) {
    // The slash keeps "rmse" from matching "mse".
    if (name.ends_with("/" + metric.name)) return metric.unit;
  }
  return "";
}

void conclude(const Setup& setup, const TrainingLoop& loop, const RunFolder& folder, RunLog& log, Exit exit) {
  const EssentialAllocations essential;  // also where the run ends because others took its memory
  const std::string state = state_name(exit, loop.position());
  // On the disk before the summary, which says that the run has ended.
  log.event("end", {{"state", state}});
  log.sync();
  write_summary(folder, summary(setup, loop, state));
  print_result(setup, loop, folder, exit);
}

void record_failure(const Setup& setup, const TrainingLoop& loop, const RunFolder& folder, RunLog& log,
                    const Error& problem) {
  // Where memory was the problem, next to none is left, and a JSON value that finds none ends the process.
  const EssentialAllocations essential;
  try {
    log.event("end",
              {{"state", "failed"}, {"exit_code", static_cast<int>(problem.exit_code())}, {"error", problem.what()}});
    log.sync();
    nlohmann::json json = summary(setup, loop, "failed");
    json["error"] = problem.what();
    write_summary(folder, std::move(json));
  } catch (const std::exception&) {  // the disk that is full, for one: the first problem is the one to tell
  }
}

}  // namespace headroom
