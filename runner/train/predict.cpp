#include <algorithm>
#include <cstdio>
#include <spdlog/spdlog.h>

#include "headroom/sdk/shape_text.hpp"
#include "memory/code_pages.hpp"
#include "metrics/metrics.hpp"
#include "record/run_folder.hpp"
#include "train/commands.hpp"
#include "train/inert_weights.hpp"
#include "train/predict_pass.hpp"
#include "train/predict_recording.hpp"
#include "train/run_memory.hpp"
#include "train/signals.hpp"
#include "train/state.hpp"
#include "train/stitch.hpp"
#include "train/tensor_file.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

void write_actions(const fs::path& file, const PredictedRecording& prediction) {
  TensorFile tensors;
  const auto add = [&](const char* name, const std::vector<double>& values) {
    const auto channels = static_cast<int64_t>(prediction.channels.size());
    tensors.add(name, torch::tensor(values, at::kDouble).view({-1, channels}));
  };
  add("open_loop", prediction.open_loop);
  add("ensembled", prediction.ensembled);
  add("recorded", prediction.recorded);
  tensors.write(file);
}

void print_result(const PredictRequest& request, const nlohmann::json& json, const std::string& text,
                  const fs::path& file) {
  if (!request.json) return static_cast<void>(std::printf("%s%s\n", text.c_str(), file.c_str()));
  nlohmann::json with_path = json;
  with_path["out"] = file.string();
  std::printf("%s\n", json_text(with_path, 2).c_str());
}

Exit write_steps(const PredictRequest& request, const Setup& setup, PredictInput& input, const Normalizer& normalizer,
                 const PredictionOrigin& origin) {
  const auto prediction = predict_steps(setup, input, normalizer, origin);
  if (!prediction) return stop_requested();
  write_actions(request.out / "predictions.safetensors", *prediction);
  write_file_atomically(request.out / "prediction.html", prediction->page());
  print_result(request, prediction->json(), prediction->table(), request.out / "prediction.html");
  return Exit::ok;
}

Exit write_pictures(const PredictRequest& request, const Setup& setup, std::unique_ptr<Recording> recording,
                    const Normalizer& normalizer, const PredictionOrigin& origin) {
  const auto prediction = predict_pictures(setup, std::move(recording), normalizer, origin, request.out);
  if (!prediction) return stop_requested();
  write_file_atomically(request.out / "prediction.html", prediction->page());
  print_result(request, prediction->json(), prediction->text(), request.out / "prediction.html");
  return Exit::ok;
}

// The first; nullopt: the model has no pair, or it is of classes.
std::optional<OutputPair> pair_of_numbers(const Model& model) {
  // Whatever metrics it declares: a pair that the host need not measure is there too.
  const auto pairs = pair_outputs(model.id(), model.outputs(), /*declared=*/{});
  if (pairs.empty() || pairs.front().classes) return std::nullopt;
  return pairs.front();
}

// Why there are no lines; "": there can be some.
std::string obstacle_to_lines(const Setup& setup, const std::optional<OutputPair>& pair, const TargetRows& target) {
  if (!pair) return setup.model->id() + " has no prediction of numbers with a target";
  const std::string of_target = "the target '" + pair->target_name + "' of " + setup.model->id();
  if (!target.places_known())
    return setup.data.source->id() + " does not say which rows of a recording its samples show (" HR_POSITIONS ")";
  return target.found() ? "" : of_target + " is not rows of a field as " + setup.data.source->id() + " gives them";
}

// One line a recording, beside the rows of all samples that `samples` holds. nullopt: stopped by a signal.
std::optional<PredictedLines> write_lines(const PredictRequest& request, const Setup& setup, const PredictInput& input,
                                          const Normalizer& normalizer, const PredictionOrigin& origin,
                                          const OutputPair& pair, const FieldRows& target, const fs::path& samples) {
  const SafetensorsFile file(samples);
  const auto find = [&](size_t output) { return file.find(setup.model->outputs()[output].name); };
  const StitchedOutputs outputs{find(pair.prediction), find(pair.target), pair.mask ? find(*pair.mask) : nullptr};
  auto lines = stitch(setup, input, normalizer, target, outputs, origin, request.out / "recordings.safetensors");
  if (lines) write_file_atomically(request.out / "prediction.html", lines->page());
  return lines;
}

// Where nobody can say what a step of the recording is: the outputs of all samples, a row a sample; and where the
// source says which rows of a recording a sample shows, what they predict put together.
Exit write_samples(const PredictRequest& request, const Setup& setup, PredictInput& input, const Normalizer& normalizer,
                   const PredictionOrigin& origin) {
  const fs::path path = request.out / "predictions.safetensors";
  std::vector<std::string> names;
  for (const OutputInfo& output : setup.model->outputs()) names.push_back(output.name);
  // On the disk as they come: a recording may have more outputs than memory holds.
  RowsFile rows(path, std::move(names));
  const std::optional<OutputPair> pair = pair_of_numbers(*setup.model);
  TargetRows target(setup.data.source->fields(), input);
  const bool done =
      run_pass(setup, input,
               {.ask =
                    [&](const MicroBatchTensors& tensors) {
                      return setup.model
                          ->step(HR_EVAL, origin.trained_steps, tensors.keys, tensors.fields, /*want_outputs=*/true)
                          .outputs;
                    },
                .take =
                    [&](const Batch& batch, int64_t first, int64_t, const Outputs& outputs) {
                      rows.append(outputs);
                      if (pair) target.compare(batch, first, outputs[pair->prediction], outputs[pair->target]);
                    }});
  if (!done) return stop_requested();
  nlohmann::json json = origin.json();
  json["samples"] = input.samples();
  std::string text = std::to_string(input.samples()) + " samples, a row each:\n";
  for (const TensorBytes& tensor : rows.write()) {
    const std::string& unit = std::ranges::find(setup.model->outputs(), tensor.name, &OutputInfo::name)->unit;
    json["outputs"].push_back({{"name", tensor.name}, {"shape", tensor.shape}, {"unit", unit}});
    text += "  " + tensor.name + " " + sdk::shape_text(tensor.shape) + (unit.empty() ? "" : " " + unit) + "\n";
  }
  if (const std::string obstacle = obstacle_to_lines(setup, pair, target); !obstacle.empty()) {
    spdlog::info("[predict] the predictions of samples are not combined: {}", obstacle);
    print_result(request, json, text, path);
    return Exit::ok;
  }
  const auto lines = write_lines(request, setup, input, normalizer, origin, *pair, *target.found(), path);
  if (!lines) return stop_requested();
  json.update(lines->json());
  print_result(request, json, text + lines->table(), request.out / "prediction.html");
  return Exit::ok;
}

// "run/predictions/episode_7".
fs::path folder_for(const PredictRequest& request) {
  const fs::path input = request.input.lexically_normal();
  // Of "episode_7/" with its slash the folder's name.
  const fs::path name = input.has_filename() ? input.stem() : input.parent_path().filename();
  return request.out.empty() ? request.run / "predictions" / name : request.out;
}

// Made where it is not; gone with this where nothing was written to it.
class OutputFolder {
 public:
  explicit OutputFolder(fs::path folder) : folder_(std::move(folder)) {
    std::error_code error;
    made_ = fs::create_directories(folder_, error);
    if (error) throw Error(Exit::cannot_write, "predict", folder_.string() + " cannot be made: " + error.message());
  }
  ~OutputFolder() {
    std::error_code not_empty;
    // remove() takes empty folders only, so nothing that was written goes.
    if (made_) fs::remove(folder_, not_empty);
  }
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

 private:
  fs::path folder_;
  bool made_ = false;
};

}  // namespace

Exit predict_run(const PredictRequest& asked) {
  PredictRequest request = asked;
  std::error_code error;
  if (!fs::exists(request.input, error))
    throw Error(Exit::bad_input, "predict", "--input " + request.input.string() + ": there is no such file or folder");
  request.input = fs::absolute(request.input);
  request.run = run_path(request.run);
  const Experiment experiment = load_experiment(request.run / "experiment.toml", request.overrides);
  // Before the wait for memory: a run without a checkpoint is reported at once.
  const fs::path chosen = chosen_checkpoint(request.run, request.checkpoint, "predict");
  install_stop_signals();
  const RunMemory memory(experiment, /*needed_bytes=*/0);
  if (memory.cancelled()) return stop_requested();
  const RunData data = prepare_data(experiment, request.plugin_dirs, /*trains=*/false);
  const Setup setup(data);
  const LoadedCheckpoint checkpoint = load_checkpoint(chosen);
  restore_model(checkpoint, *setup.model, /*use_average=*/true);
  const auto normalizer = Normalizer::from_json(checkpoint.at("normalizer", nlohmann::json::value_t::array));
  const PredictionOrigin origin = {request.run.string(), request.input.string(), chosen.string(),
                                   checkpoint.json.at("step")};
  std::unique_ptr<Recording> recording = Recording::open(data.source_library, setup.data.source, request.input);
  const bool by_step = recording != nullptr && setup.model->predictor() != nullptr;
  request.out = folder_for(request);
  const OutputFolder folder(request.out);
  move_inert_weights_to_disk(setup.model->parameters());
  drop_code_pages();  // of the start
  if (by_step && predicts_pictures(setup))
    return write_pictures(request, setup, std::move(recording), normalizer, origin);
  const auto input = recording != nullptr ? recorded_steps(setup, std::move(recording), normalizer)
                                          : samples_at(setup, request.input, normalizer);
  if (by_step) return write_steps(request, setup, *input, normalizer, origin);
  spdlog::info("[predict] {} and {} do not both offer " HR_PREDICT
               ": the outputs of every sample are written as they "
               "are",
               setup.model->id(), setup.data.source->id());
  return write_samples(request, setup, *input, normalizer, origin);
}

}  // namespace headroom
