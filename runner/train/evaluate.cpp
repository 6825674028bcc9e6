#include "train/evaluate.hpp"

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "memory/budget.hpp"
#include "memory/code_pages.hpp"
#include "record/run_folder.hpp"
#include "train/commands.hpp"
#include "train/inert_weights.hpp"
#include "train/micro_batches.hpp"
#include "train/run_memory.hpp"
#include "train/run_summary.hpp"
#include "train/signals.hpp"
#include "train/state.hpp"

namespace headroom {

namespace {

// What a pass over a split works with.
struct Pass {
  const Setup& setup;
  Retry& retry;
  StepSums &staged, &sums;
  ForwardSnapshot& snapshot;
};

void add_micro_batch(const Pass& pass, const Batch& batch, int64_t first, int64_t count, int64_t step,
                     bool want_outputs, Examples* examples) {
  const Setup& setup = pass.setup;
  const MicroBatchTensors tensors(batch, first, count, setup.device, setup.dtype);
  const uint64_t position = batch.first + static_cast<uint64_t>(first);
  const bool shown = examples != nullptr && examples->wants(position, static_cast<uint64_t>(count));
  StepResult result = setup.model->step(HR_EVAL, step, tensors.keys, tensors.fields, want_outputs || shown);
  if (shown) examples->take(position, tensors.fields, result.outputs);
  // Outputs that only the examples wanted would widen the sample of metrics.mode = "sampled".
  if (!want_outputs) result.outputs.clear();
  // What may run out of memory is added here first.
  pass.staged.zero();
  pass.staged.add(result);
  const EssentialAllocations essential;  // the sums take all of a micro-batch or nothing
  pass.sums.add(pass.staged);
}

void add_batch(const Pass& pass, const Batch& batch, int64_t step, bool want_outputs, Examples* examples) {
  (void)in_micro_batches(batch, pass.retry, [&](int64_t first, int64_t count) {
    const bool fits = attempt_with_snapshot(pass.snapshot, pass.retry, "evaluation", count, [&] {
      add_micro_batch(pass, batch, first, count, step, want_outputs, examples);
    });
    if (!fits) examples = nullptr;  // a picture on a page is worth no memory a run is short of
    return fits ? PassEnd::done : PassEnd::again;
  });
  pass.retry.succeeded();
}

// As many samples at once as the run evaluated, so that the same ones give the same bits. A run without validation does
// not know.
std::optional<int64_t> size_in(const nlohmann::json& checkpoint) {
  const nlohmann::json::json_pointer place("/position/eval_micro_batch");
  if (!checkpoint.contains(place) || !checkpoint.at(place).is_number_integer()) return std::nullopt;
  return checkpoint.at(place).get<int64_t>();
}

const Split& pick_split(const Setup& setup, const std::string& name) {
  const Split* split = setup.data.splits.find(name);
  if (split == nullptr || split->length() == 0) {
    throw Error(Exit::bad_input, "evaluate",
                "the data has no split '" + name + "' with samples: use train, val or test");
  }
  return *split;
}

}  // namespace

std::optional<StepSums> evaluate(const Setup& setup, Loader& loader, int64_t step, Retry& retry,
                                 const std::function<bool(int64_t done)>& stop, Examples* examples) {
  at::NoGradGuard no_grad;
  std::optional<StepSums> sums, staged;
  std::optional<ForwardSnapshot> snapshot, before;
  with_one_retry("the sums of an evaluation", Owner::metrics, setup.device, setup.advice(), [&] {
    sums.emplace(setup.model->metrics().size(), setup.device, setup.output_metrics());
    staged.emplace(setup.model->metrics().size(), setup.device, setup.output_metrics());
    snapshot.emplace(*setup.model, setup.device);
    // Of when the evaluation began; `snapshot` is of each micro-batch.
    before.emplace(*setup.model, setup.device);
    before->take();
  });
  const Pass pass{setup, retry, *staged, *sums, *snapshot};
  const MetricSample sample = setup.metric_sample(loader, /*training=*/false);
  const int64_t micro_batch = retry.size();
  const auto as_before = [&] {  // it begins anew when the run goes on
    before->restore();
    retry.micro_batch().restore(micro_batch);
  };
  // Always epoch 0: evaluations see the same samples in the same order.
  loader.seek(0);
  int64_t done = 0;
  try {
    // `done` batches were delivered: the one that could not be read begins behind them.
    const auto seek_back = [&] { loader.seek(0, static_cast<uint64_t>(done * loader.batch_size())); };
    while (const auto batch = read_batch(
               retry, [&] { return loader.next(); }, seek_back)) {
      const bool want_outputs = sample.contains(static_cast<uint64_t>(done));
      if (stop(++done)) {
        as_before();
        return std::nullopt;
      }
      add_batch(pass, *batch, step, want_outputs, examples);
    }
  } catch (const TakenByOthers&) {
    as_before();
    throw;
  }
  retry.restore_speed();
  return sums;
}

Exit evaluate_run(const EvaluateRequest& request) {
  const Experiment experiment = load_experiment(run_path(request.run) / "experiment.toml", request.overrides);
  // Before memory is claimed: the wait for it can be long, and a signal ends it.
  install_stop_signals();
  // The limit is set before plugins and data take memory.
  const RunMemory memory(experiment, /*needed_bytes=*/0);
  if (memory.cancelled()) return stop_requested();
  const RunData data = prepare_data(experiment, request.plugin_dirs, /*trains=*/false);
  const Setup setup(data);
  const LoadedCheckpoint checkpoint = load_checkpoint(chosen_checkpoint(request.run, request.checkpoint, "evaluate"));
  restore_model(checkpoint, *setup.model, /*use_average=*/true);
  LoaderOptions options = setup.loader_options(false);
  options.keep_samples.reset();  // each is read once
  Loader loader(setup.data.source, pick_split(setup, request.split),
                // The statistics that the run was trained with; new measurements might differ.
                Normalizer::from_json(checkpoint.at("normalizer", nlohmann::json::value_t::array)), options);
  const int64_t step = checkpoint.json.at("step");
  Retry retry(setup.evaluation_micro_batch(), setup.device, setup.advice(),
              [](const Shortage& shortage, const std::string& action) {
                spdlog::warn("out of memory in {}, micro-batch {}: {}", shortage.doing, shortage.micro_batch, action);
              });
  if (const auto size = size_in(checkpoint.json); size && setup.data.splits.val.length() > 0)
    retry.micro_batch().restore(*size);
  move_inert_weights_to_disk(setup.model->parameters());
  drop_code_pages();  // of the start
  const auto began = std::chrono::steady_clock::now();
  const auto sums = evaluate(setup, loader, step, retry, [](int64_t) { return stop_requested() != Exit::ok; });
  if (!sums) return stop_requested();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const auto [values, channels, classes] = sums->measured(request.split, setup.model->metrics());
  if (request.json) {
    const nlohmann::json json = {{"run", request.run.string()},
                                 {"split", request.split},
                                 {"step", step},
                                 {"samples", loader.samples_per_epoch()},
                                 {"seconds", seconds},
                                 {"metrics", scalars_json(values)},
                                 {"channels", channels},
                                 {"classes", classes}};
    std::printf("%s\n", json_text(json, 2).c_str());
    return Exit::ok;
  }
  for (const auto& [name, value] : values)
    std::printf("%-24s %.6g %s\n", name.c_str(), value, unit_of(setup, name).c_str());
  return Exit::ok;
}

}  // namespace headroom
