// A run's folder as a trainer leaves it, small and with the figures a test asks for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "record/run_folder.hpp"
#include "record/run_log.hpp"
#include "record/temporary_folder.hpp"

namespace headroom {

struct WrittenRun {
  std::string name = "emg", state = "finished", identity = "aa11", precision = "fp32";
  int64_t batch_size = 8, steps = 20;
  double val_loss = 0.25;
  nlohmann::json data = nullptr;  // summary.data
};

inline std::filesystem::path write_run(const std::filesystem::path& root, const WrittenRun& run) {
  RunFolder folder = RunFolder::create(root, run.name);
  write_text(folder.path() / "experiment.toml", "[experiment]\nname = \"" + run.name + "\"\n[train]\nbatch_size = " +
                                                    std::to_string(run.batch_size) + "\n");
  RunLog log(folder);
  log.event("start", {{"name", run.name}, {"identity", run.identity}});
  for (int64_t step = 1; step <= run.steps; ++step) {
    log.scalars(step, 1, {{"train/loss_step", 1.0 / static_cast<double>(step)}, {"train/lr", 1e-3}});
    if (step % 5 == 0) {
      log.memory(step,
                 {{"held_bytes", 300 << 20},
                  {"activations_bytes", 200 << 20},
                  {"other_bytes", 100 << 20},
                  {"process_bytes", 301 << 20},
                  {"system_total_bytes", 1 << 30}},
                 "");
      log.scalars(step, 1, {{"train/loss", 0.5}, {"val/loss", run.val_loss + 1.0 / static_cast<double>(step)}});
      log.event("gc_point", {{"step", step}, {"what", "gc"}, {"returned_bytes", 1 << 20}, {"seconds", 0.01}});
    }
  }
  nlohmann::json summary = {
      {"state", run.state},
      {"identity", run.identity},
      {"precision", run.precision},
      {"steps", run.steps},
      {"epochs", 1},
      {"train_seconds", 2.0},
      {"window_samples", run.batch_size},
      {"best", {{"metric", "val/loss"}, {"value", run.val_loss}, {"step", run.steps}, {"epoch", 1}}},
      {"metrics", {{"train/loss", 0.5}, {"val/loss", run.val_loss}}},
      {"memory",
       {{"measured_peak_bytes", 310 << 20}, {"predicted_peak_bytes", 320 << 20}, {"limit_bytes", 400 << 20}}}};
  if (!run.data.is_null()) summary["data"] = run.data;
  if (!run.state.empty()) write_summary(folder, summary);
  return folder.path();
}

}  // namespace headroom
