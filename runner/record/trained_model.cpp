#include "record/trained_model.hpp"

#include <algorithm>
#include <sstream>

#include "config/experiment.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* format_key = "headroom";
constexpr const char* export_format = "1";
// A U8 tensor beside the weights: bytes need not be text.
constexpr const char* state_tensor = "headroom.plugin_state";

Error refuse_export(const std::string& file, const std::string& what) {
  return Error(Exit::bad_input, "export", file + ": " + what);
}

// A member of the checkpoint's JSON, or null.
Json member_or_null(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? *found : Json();
}

std::string text_or_empty(const Json& json) { return json.is_string() ? json.get<std::string>() : std::string(); }

// Parameters that train have an average where the run keeps one; all others come from the model's file.
std::vector<TensorBytes> evaluated_weights(const LoadedCheckpoint& checkpoint) {
  std::vector<TensorBytes> weights = checkpoint.model.tensors();
  for (TensorBytes& tensor : weights) {
    const TensorBytes* average = checkpoint.state.find(average_name(tensor.name));
    if (average == nullptr) continue;
    const std::string name = tensor.name;
    tensor = *average;
    tensor.name = name;
  }
  return weights;
}

Json run_json(const fs::path& run, const Experiment& experiment, const LoadedCheckpoint& checkpoint) {
  const Json around = member_or_null(checkpoint.json, "surroundings");
  return {{"id", run.filename().string()},
          {"name", experiment.experiment.name},
          {"checkpoint", checkpoint.model.path().parent_path().filename().string()},
          {"step", checkpoint.json.at("step")},
          {"identity", member_or_null(around, "identity")},
          {"content_id", member_or_null(around, "content_id")},
          {"libtorch", member_or_null(around, "libtorch")}};
}

}  // namespace

TrainedModel TrainedModel::of_run(const fs::path& folder, const std::string& checkpoint_word) {
  const fs::path run = run_path(folder);
  const Experiment experiment = load_experiment(run / "experiment.toml");
  const fs::path chosen = chosen_checkpoint(run, checkpoint_word, "export");
  // `best` is a link: the step's own name says more.
  std::error_code error;
  const fs::path real = fs::canonical(chosen, error);
  LoadedCheckpoint checkpoint = load_checkpoint(error ? chosen : real);
  TrainedModel model;
  const Json told = member_or_null(checkpoint.json, "model");
  model.plugin = experiment.model_plugin;
  model.id = text_or_empty(member_or_null(told, "plugin"));
  std::ostringstream options;
  options << experiment.model_options;
  model.options = options.str();
  model.precision = experiment.train.precision;
  model.seed = experiment.experiment.seed;
  model.step = checkpoint.json.at("step");
  model.run = run_json(run, experiment, checkpoint);
  model.fields = member_or_null(told, "fields");
  model.outputs = member_or_null(told, "outputs");
  model.normalizer = checkpoint.at("normalizer", Json::value_t::array);
  model.weights = evaluated_weights(checkpoint);
  if (const TensorBytes* state = checkpoint.state.find(plugin_state_name)) model.state = state->data;
  model.place = checkpoint.model.path().parent_path().string();
  model.files_.push_back(std::move(checkpoint.model));
  model.files_.push_back(std::move(checkpoint.state));
  return model;
}

std::map<std::string, std::string> TrainedModel::metadata() const {
  // Hugging Face's transformers refuses a safetensors file that does not name its format.
  return {{"format", "pt"},
          {format_key, export_format},
          {"model", id.empty() ? plugin : id},
          {"options", options},
          {"precision", precision},
          {"seed", std::to_string(seed)},
          {"run", json_text(run)},
          {"fields", json_text(fields)},
          {"outputs", json_text(outputs)},
          {"normalizer", json_text(normalizer)}};
}

void TrainedModel::write(const fs::path& file) const {
  std::vector<TensorBytes> tensors = weights;
  if (!state.empty()) tensors.push_back({state_tensor, {kDLUInt, 8, 1}, {static_cast<int64_t>(state.size())}, state});
  write_whole_safetensors(file, tensors, metadata());
}

TrainedModel TrainedModel::of_file(const fs::path& path) {
  SafetensorsFile file(path);
  const auto text = [&](const char* key) {
    const auto found = file.metadata().find(key);
    if (found != file.metadata().end()) return found->second;
    throw refuse_export(path.string(),
                        std::string("its metadata has no '") + key +
                            "': give a run's folder, or a file of `headroom export --format safetensors`");
  };
  const auto parsed = [&](const char* key) { return parse_json(text(key)); };
  if (text(format_key) != export_format)
    throw refuse_export(path.string(),
                        "has format " + text(format_key) + "; this Headroom reads format " + export_format);
  TrainedModel model;
  model.plugin = model.id = text("model");
  model.options = text("options");
  model.precision = text("precision");
  model.run = parsed("run");
  model.fields = parsed("fields");
  model.outputs = parsed("outputs");
  model.normalizer = parsed("normalizer");
  const Json seed = parsed("seed"), step = member_or_null(model.run, "step");
  if (!seed.is_number_unsigned() || !step.is_number_unsigned() || !model.normalizer.is_array())
    throw refuse_export(path.string(),
                        "its metadata is damaged: 'seed', 'run' or 'normalizer' is not what was written");
  model.seed = seed;
  model.step = step;
  model.place = path.string();
  for (const TensorBytes& tensor : file.tensors()) {
    if (tensor.name == state_tensor) {
      model.state = tensor.data;
    } else {
      model.weights.push_back(tensor);
    }
  }
  model.files_.push_back(std::move(file));
  return model;
}

const TensorBytes* TrainedModel::find(const std::string& name) const {
  const auto found = std::ranges::find(weights, name, &TensorBytes::name);
  return found == weights.end() ? nullptr : &*found;
}

}  // namespace headroom
