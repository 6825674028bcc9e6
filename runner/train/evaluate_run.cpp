#include "train/evaluate_run.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "record/run_folder.hpp"
#include "train/evaluate.hpp"
#include "train/run_memory.hpp"
#include "train/run_summary.hpp"
#include "train/signals.hpp"
#include "train/state.hpp"

namespace headroom {

namespace {

const Split& pick_split(const Setup& setup, const std::string& name) {
  const Split* split = setup.data.splits.find(name);
  if (split == nullptr || split->length() == 0) {
    throw Error(Exit::bad_input, "evaluate",
                "the data has no split '" + name + "' with samples: use train, val or test");
  }
  return *split;
}

}  // namespace

Exit evaluate_run(const EvaluateRequest& request) {
  const Experiment experiment = load_experiment(run_path(request.run) / "experiment.toml", request.overrides);
  // Before memory is claimed: the wait for it can be long, and a signal ends it.
  install_stop_signals();
  // The limit stands before plugins and data take memory.
  const RunMemory memory(experiment, /*needed_bytes=*/0);
  if (memory.cancelled()) return stop_requested();
  const RunData data = prepare_data(experiment, request.plugin_dirs, /*trains=*/false);
  const Setup setup(data);
  const LoadedCheckpoint checkpoint = load_checkpoint(chosen_checkpoint(request.run, request.checkpoint, "evaluate"));
  restore_model(checkpoint, *setup.model, /*use_average=*/true);
  LoaderOptions options = setup.loader_options(false);
  options.keep_samples.reset();  // each is read once
  Loader loader(setup.data.source, pick_split(setup, request.split),
                // The statistics that the run was trained with; measured anew they might differ.
                Normalizer::from_json(checkpoint.at("normalizer", nlohmann::json::value_t::array)), options);
  const int64_t step = checkpoint.json.at("step");
  Retry retry(setup.micro_batch(), setup.device, setup.advice(),
              [](const Shortage& shortage, const std::string& action) {
                spdlog::warn("out of memory in {}, micro-batch {}: {}", shortage.doing, shortage.micro_batch, action);
              });
  const auto sums = evaluate(setup, loader, step, retry, [](int64_t) { return stop_requested() != Exit::ok; });
  if (!sums) return stop_requested();
  const auto [values, channels, classes] = sums->measured(request.split, setup.model->metrics());
  if (request.json) {
    const nlohmann::json json = {{"run", request.run.string()},     {"split", request.split}, {"step", step},
                                 {"metrics", scalars_json(values)}, {"channels", channels},   {"classes", classes}};
    std::printf("%s\n", json_text(json, 2).c_str());
    return Exit::ok;
  }
  for (const auto& [name, value] : values)
    std::printf("%-24s %.6g %s\n", name.c_str(), value, unit_of(setup, name).c_str());
  return Exit::ok;
}

}  // namespace headroom
