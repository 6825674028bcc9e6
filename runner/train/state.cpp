#include "train/state.hpp"

#include <ATen/DLConvertor.h>
#include <cmath>
#include <map>

#include "error.hpp"
#include "infer/stored_tensor.hpp"
#include "plugins/field_json.hpp"
#include "record/checkpoint.hpp"
#include "train/differences.hpp"
#include "train/inert_weights.hpp"
#include "train/micro_batches.hpp"

namespace headroom {

namespace {

constexpr const char* epoch_sums_name = "epoch_sums";
constexpr const char* epoch_outputs_name = "epoch_outputs/";
constexpr const char* interval_sums_name = "interval_sums";

// Keeps CPU copies alive while their bytes are written. On the CPU nothing is copied.
class ByteList {
 public:
  // `pages_of_file`: where the tensor lay once it was moved to a file.
  void add(std::string name, const at::Tensor& tensor, const void* pages_of_file = nullptr) {
    held_.push_back(tensor.detach().cpu().contiguous());
    const at::Tensor& held = held_.back();
    bytes_.push_back({std::move(name),
                      at::getDLDataType(held),
                      held.sizes().vec(),
                      {static_cast<const std::byte*>(held.const_data_ptr()), held.nbytes()},
                      held.const_data_ptr() == pages_of_file});
  }
  std::span<const TensorBytes> bytes() const { return bytes_; }

 private:
  std::vector<at::Tensor> held_;
  std::vector<TensorBytes> bytes_;
};

// "generator/cpu", "generator/cuda": of a kind of device, so that a checkpoint goes from one GPU to another.
std::string generator_name(const at::Generator& generator) {
  return "generator/" + c10::DeviceTypeName(generator.device().type(), /*lower_case=*/true);
}

std::string copy_into(const SafetensorsFile& file, const std::string& name, at::Tensor& target) {
  return copy_stored(file.find(name), name, target);
}

void require(const std::string& problem, const std::filesystem::path& path) {
  if (!problem.empty()) {
    throw Error(Exit::bad_input, "checkpoint",
                path.string() + ": " + problem + ": use the checkpoint with the experiment that wrote it");
  }
}

// "exp_avg/head.weight": the optimizer, train.ema or train.groups kept nothing of it before.
[[noreturn]] void refuse_optimizer(const std::string& name, const std::filesystem::path& path) {
  throw Error(Exit::bad_input, "checkpoint",
              path.string() + ": '" + name +
                  "' is missing, which the optimizer goes on with: resume it with the optimizer, train.ema and "
                  "train.groups that it was trained with, or begin a new run from its weights (init.from)");
}

// In their order, which an object would lose. JSON has no number for what is not finite.
nlohmann::json values_json(const Scalars& values) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [name, value] : values) {
    if (std::isfinite(value)) json.push_back({name, value});
  }
  return json;
}

// What somebody who asks the model later has to know of it: its fields as the source gives them, and what it gives.
nlohmann::json model_json(const Setup& setup) {
  static constexpr const char* roles[] = {"prediction", "target", "mask", "aux"};
  nlohmann::json outputs = nlohmann::json::array();
  for (const OutputInfo& output : setup.model->outputs()) {
    const bool known = output.role >= HR_PREDICTION && output.role <= HR_AUX;
    outputs.push_back(
        {{"name", output.name}, {"role", known ? roles[output.role - HR_PREDICTION] : "aux"}, {"unit", output.unit}});
  }
  return {{"plugin", setup.model->id()}, {"fields", fields_to_json(setup.data.source->fields())}, {"outputs", outputs}};
}

nlohmann::json position_json(const Position& p) {
  nlohmann::json loss_scale = nullptr;
  // null without a loss scale, as under every precision but fp16.
  if (p.loss_scale) loss_scale = {p.loss_scale->factor, p.loss_scale->windows};
  return {{"epoch", p.epoch},
          {"finished_step", p.finished_step},
          {"samples", p.samples},
          {"skipped_windows", p.skipped_windows},
          {"bad_samples", p.bad_samples},
          {"judged_by", p.judged_by},
          {"has_best", p.has_best},
          {"best", p.best},
          {"best_epoch", p.best_epoch},
          {"best_step", p.best_step},
          {"improved_to", p.improved_to},
          {"stale_evaluations", p.stale_evaluations},
          {"plateau_stale", p.plateau_stale},
          {"plateau_drops", p.plateau_drops},
          {"train_seconds", p.train_seconds},
          {"stopped_early", p.stopped_early},
          {"micro_batch", p.micro_batch},
          {"eval_micro_batch", p.eval_micro_batch},
          {"reserved_bytes", p.reserved_bytes},
          {"recompute", p.recompute},
          {"loss_scale", loss_scale},
          {"values", values_json(p.measured.values)},
          {"channels", p.measured.channels},
          {"classes", p.measured.classes}};
}

Position position_from(const nlohmann::json& json, int64_t step) {
  Position p;
  p.step = step;
  json.at("epoch").get_to(p.epoch);
  // A checkpoint of an earlier build may lack the keys that have a default here.
  p.finished_step = json.value("finished_step", step);
  json.at("samples").get_to(p.samples);
  json.at("skipped_windows").get_to(p.skipped_windows);
  json.at("bad_samples").get_to(p.bad_samples);
  p.judged_by = json.value("judged_by", std::string());
  json.at("has_best").get_to(p.has_best);
  json.at("best").get_to(p.best);
  json.at("best_epoch").get_to(p.best_epoch);
  json.at("best_step").get_to(p.best_step);
  p.improved_to = json.value("improved_to", p.best);
  json.at("stale_evaluations").get_to(p.stale_evaluations);
  p.plateau_stale = json.value("plateau_stale", int64_t{0});
  p.plateau_drops = json.value("plateau_drops", int64_t{0});
  json.at("train_seconds").get_to(p.train_seconds);
  json.at("stopped_early").get_to(p.stopped_early);
  json.at("micro_batch").get_to(p.micro_batch);
  json.at("eval_micro_batch").get_to(p.eval_micro_batch);
  p.recompute = json.value("recompute", std::vector<std::string>());
  if (const auto scale = json.find("loss_scale"); scale != json.end() && !scale->is_null())
    p.loss_scale = {scale->at(0).get<double>(), scale->at(1).get<int64_t>()};
  json.at("values").get_to(p.measured.values);
  p.measured.channels = json.value("channels", nlohmann::json::object());
  p.measured.classes = json.value("classes", nlohmann::json::object());
  return p;
}

bool in_checkpoint(const Parameter& parameter) { return parameter.kind != HR_DERIVED; }

}  // namespace

std::filesystem::path save_state(Checkpoints& checkpoints, const RunState& state, const nlohmann::json& log_lengths,
                                 bool is_best) {
  // model.safetensors has the tensors of the model alone, which [init] reads; state.safetensors has the rest.
  ByteList model, extra;
  for (const Parameter& parameter : state.setup.model->parameters()) {
    if (in_checkpoint(parameter)) model.add(parameter.name, *parameter.tensor, parameter.pages_of_file);
  }
  for (const NamedTensor& named : state.optimizer.state()) extra.add(named.name, named.tensor);
  extra.add(epoch_sums_name, state.epoch_sums.tensor());
  for (const auto& [name, tensor] : state.epoch_sums.outputs().state()) extra.add(epoch_outputs_name + name, tensor);
  extra.add(interval_sums_name, state.interval_sums.tensor());
  for (const at::Generator& generator : generators_for(state.setup.device))
    extra.add(generator_name(generator), generator.get_state());
  // Alive until save() returns: the tensor below is a view of it.
  std::string plugin_state = state.setup.model->save_state();
  extra.add(plugin_state_name,
            torch::from_blob(plugin_state.data(), {static_cast<int64_t>(plugin_state.size())}, at::kByte));
  nlohmann::json json = {{"position", position_json(state.position)},
                         {"normalizer", state.normalizer.to_json()},
                         {"model", model_json(state.setup)},
                         {"surroundings", surroundings(state.setup)},
                         {"init_id", state.setup.init_id},
                         {"without_optimizer_state", state.optimizer.without_state()},
                         {"logs", log_lengths}};
  return checkpoints.save({state.position.step, model.bytes(), extra.bytes(), std::move(json)}, is_best);
}

nlohmann::json restore_state(const LoadedCheckpoint& checkpoint, const RunState& state) {
  // The live weights: training goes on with those, and the average is part of the optimizer's state.
  restore_model(checkpoint, *state.setup.model, /*use_average=*/false);
  // A checkpoint of an earlier build has the state of all.
  state.optimizer.make_state_but_of(checkpoint.json.value("without_optimizer_state", std::vector<std::string>()));
  for (NamedTensor& named : state.optimizer.state()) {
    if (checkpoint.state.find(named.name) == nullptr) refuse_optimizer(named.name, checkpoint.state.path());
    require(copy_into(checkpoint.state, named.name, named.tensor), checkpoint.state.path());
  }
  require(copy_into(checkpoint.state, epoch_sums_name, state.epoch_sums.tensor()), checkpoint.state.path());
  require(copy_into(checkpoint.state, interval_sums_name, state.interval_sums.tensor()), checkpoint.state.path());
  state.epoch_sums.outputs().restore([&](const std::string& name) {
    const TensorBytes* stored = checkpoint.state.find(epoch_outputs_name + name);
    return stored != nullptr ? tensor_of(*stored).to(state.setup.device) : at::Tensor();
  });
  for (at::Generator& generator : generators_for(state.setup.device)) {
    const std::string name = generator_name(generator);
    // One that was saved on another device has no numbers for this one.
    if (generator.device().type() != at::kCPU && checkpoint.state.find(name) == nullptr) continue;
    // For its shape; the numbers are replaced.
    at::Tensor numbers = generator.get_state();
    require(copy_into(checkpoint.state, name, numbers), checkpoint.state.path());
    generator.set_state(numbers);
  }
  try {
    state.position = position_from(checkpoint.json.at("position"), checkpoint.json.at("step").get<int64_t>());
    return checkpoint.json.at("logs");
  } catch (const nlohmann::json::exception& problem) {
    throw Error(Exit::bad_input, "checkpoint",
                checkpoint.state.path().parent_path().string() + "/checkpoint.json: " + problem.what());
  }
}

void restore_model(const LoadedCheckpoint& checkpoint, Model& model, bool use_average) {
  for (Parameter& parameter : model.parameters()) {
    if (!in_checkpoint(parameter)) continue;
    // Only parameters that train have an average; all others come from the model's file.
    const std::string average = average_name(parameter.name);
    const bool averaged = use_average && checkpoint.state.find(average) != nullptr;
    const SafetensorsFile& file = averaged ? checkpoint.state : checkpoint.model;
    require(copy_into(file, averaged ? average : parameter.name, *parameter.tensor), file.path());
    release_pages(parameter);
  }
  if (const TensorBytes* bytes = checkpoint.state.find(plugin_state_name)) {
    model.load_state({reinterpret_cast<const char*>(bytes->data.data()), bytes->data.size()});
  }
}

}  // namespace headroom
