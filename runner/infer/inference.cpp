#include "infer/inference.hpp"

#include <ATen/DLConvertor.h>
#include <algorithm>
#include <toml++/toml.h>

#include "data/field_statistics.hpp"
#include "headroom/random.h"
#include "headroom/sdk/shape_text.hpp"
#include "infer/stored_tensor.hpp"
#include "plugins/field_json.hpp"
#include "plugins/precision_dtypes.hpp"

namespace headroom {

namespace {

Error refuse(const TrainedModel& trained, const std::string& what) {
  return Error(Exit::bad_input, "infer", trained.place + ": " + what);
}

std::vector<Field> fields_of(const TrainedModel& trained) {
  if (trained.fields.is_array()) return fields_from_json(trained.fields);
  throw refuse(trained,
               "was saved by an earlier build, which did not keep what fields the model takes: a checkpoint saved by "
               "this build has them, as `headroom run --resume` with more epochs writes one");
}

OptionValues options_of(const TrainedModel& trained, const Library& library) {
  try {
    const toml::table table = toml::parse(trained.options, trained.place);
    return check_options(to_option_table(library.model_torch()->options), &table, "model.options",
                         "model '" + library.id() + "'");
  } catch (const toml::parse_error& problem) {
    throw refuse(trained, "its options cannot be read: " + std::string(problem.description()));
  }
}

std::unique_ptr<Model> make_model(const TrainedModel& trained, const Library& library, std::vector<Field> fields) {
  if (library.model_torch() == nullptr) throw refuse(trained, "'" + library.id() + "' is not a model plugin");
  // Where nothing was standardised there are no statistics.
  const bool standardises = !trained.normalizer.empty();
  return std::make_unique<Model>(library, options_of(trained, library),
                                 delivered_fields(std::move(fields), standardises), trained.seed);
}

bool is_floating(const Field& field) { return field.dtype.code == kDLFloat; }

// What a caller gives: neither standardised by the source nor to be standardised by the host.
Field as_given(Field field) {
  field.normalize = false;
  for (Channel& channel : field.channels) channel.mean = 0.0, channel.std = 1.0;
  return field;
}

}  // namespace

Inference::Inference(const TrainedModel& trained, const Library& library, const at::Device& device)
    : inputs_(fields_of(trained)),
      device_(device),
      dtype_(parameter_dtype(trained.precision)),
      seed_(trained.seed),
      step_(trained.step),
      model_(make_model(trained, library, inputs_)) {
  load(trained);
  if (const hr_predict* predictor = model_->predictor()) {
    const auto found = std::ranges::find(inputs_, std::string(predictor->target_field), &Field::name);
    if (found != inputs_.end()) target_ = static_cast<size_t>(found - inputs_.begin());
  }
  find_scales(statistics_from_json(trained.normalizer));
  std::ranges::transform(inputs_, inputs_.begin(), as_given);
  describe_outputs();
}

void Inference::load(const TrainedModel& trained) {
  model_->to(device_, dtype_);
  model_->autocast(autocast_dtype(trained.precision));
  for (Parameter& parameter : model_->parameters()) {
    if (parameter.kind == HR_DERIVED) continue;
    const std::string problem = copy_stored(trained.find(parameter.name), parameter.name, *parameter.tensor);
    if (!problem.empty())
      throw refuse(trained, problem + ": use the build of the plugin that the run was trained with");
  }
  model_->load_state({reinterpret_cast<const char*>(trained.state.data()), trained.state.size()});
}

std::optional<Inference::Scale> Inference::scale_of(const std::vector<Channel>& channels,
                                                    const std::vector<int64_t>& spread) {
  const auto is_plain = [](const Channel& channel) { return channel.mean == 0.0 && channel.std == 1.0; };
  if (std::ranges::all_of(channels, is_plain)) return std::nullopt;
  std::vector<double> mean, std, inverse_std;
  for (const Channel& channel : channels) {
    mean.push_back(channel.mean);
    std.push_back(channel.std);
    inverse_std.push_back(1 / channel.std);
  }
  const auto tensor = [&](const std::vector<double>& values) {
    return torch::tensor(values, at::kDouble).view(spread);
  };
  return Scale{tensor(mean), tensor(std), tensor(inverse_std)};
}

void Inference::find_scales(std::span<const FieldStatistics> statistics) {
  for (const FieldStatistics& measured : statistics) {
    const auto found = std::ranges::find(inputs_, measured.field, &Field::name);
    if (found == inputs_.end()) continue;
    const size_t channels =
        found->channel_axis < 0 ? 1 : static_cast<size_t>(found->shape[static_cast<size_t>(found->channel_axis)]);
    if (measured.mean.size() == channels) continue;
    throw Error(Exit::bad_input, "infer",
                "field '" + found->name + "' has " + std::to_string(channels) +
                    " channels; the normaliser was measured on " + std::to_string(measured.mean.size()));
  }
  for (const Field& field : inputs_) {
    scales_.push_back(is_floating(field)
                          ? scale_of(measured_channels(field, statistics, field.channel_axis), beside_batch(field))
                          : std::nullopt);
  }
  if (!target_) return;
  // As `headroom predict`: channels of numbers are given as measured, pictures from 0 to 1.
  const Field& field = inputs_[*target_];
  const auto& outputs = model_->outputs();
  const auto found = std::ranges::find(outputs, HR_PREDICTION, &OutputInfo::role);
  if (found == outputs.end() || field.shape.size() != 2 || !is_floating(field)) return;
  predicted_ = static_cast<size_t>(found - outputs.begin());
  predicted_scale_ = scale_of(measured_channels(field, statistics, /*axis=*/1), {1, 1, field.shape[1]});
}

int64_t Inference::require_suitable(std::span<const at::Tensor> inputs) const {
  if (inputs.size() != inputs_.size()) {
    throw Error(Exit::bad_input, "infer",
                std::to_string(inputs.size()) + " inputs were given; the model has " + std::to_string(inputs_.size()));
  }
  int64_t samples = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& tensor = inputs[i];
    if (!tensor.defined()) continue;
    const Field& field = inputs_[i];
    const auto wrong = [&](const std::string& needs) {
      return Error(Exit::bad_input, "infer",
                   "input '" + field.name + "' is " + dtype_name(at::getDLDataType(tensor)) + " " +
                       sdk::shape_text(tensor.sizes()) + "; it must be " + needs);
    };
    const bool same_axes = tensor.dim() == static_cast<int64_t>(field.shape.size()) + 1;
    // A model that predicts takes whole pictures where it was trained on crops; it says itself what does not suit it.
    const bool same_shape = same_axes && (target_ || tensor.sizes().slice(1) == at::IntArrayRef(field.shape));
    if (!same_shape || at::getDLDataType(tensor).code != field.dtype.code ||
        at::getDLDataType(tensor).bits != field.dtype.bits)
      throw wrong(dtype_name(field.dtype) + " [samples, then " + sdk::shape_text(field.shape) + "]");
    // Standardising would spread one channel over all of them, and the model would not see it.
    const int64_t channels = scales_[i] && target_ != i ? scales_[i]->mean.numel() : 1;
    if (channels > 1 && tensor.size(field.channel_axis + 1) != channels)
      throw wrong("of " + std::to_string(channels) + " channels along axis " + std::to_string(field.channel_axis + 1));
    if (samples == 0) samples = tensor.size(0);
    if (tensor.size(0) != samples || samples < 1)
      throw wrong("of as many samples as the other inputs, and at least one");
  }
  if (samples == 0) throw Error(Exit::bad_input, "infer", "no input was given");
  return samples;
}

std::vector<at::Tensor> Inference::standardised(std::span<const at::Tensor> inputs) const {
  std::vector<at::Tensor> fields;
  for (size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor field = inputs[i];
    // What a model predicts it is not shown.
    if (!field.defined() || target_ == i) {
      fields.emplace_back();
      continue;
    }
    // In float64 and back, as the loader of a run does it: the values are equal to the bit.
    if (scales_[i])
      field = field.to(at::kDouble).sub(scales_[i]->mean).mul(scales_[i]->inverse_std).to(field.scalar_type());
    fields.push_back(field.to(device_, field.is_floating_point() ? dtype_ : field.scalar_type()));
  }
  return fields;
}

at::Tensor Inference::as_measured(const at::Tensor& prediction) const {
  if (prediction.dim() != 3 || prediction.size(2) != predicted_scale_->mean.size(2)) {
    throw Error(Exit::plugin, model_->id(),
                "its prediction has the shape " + sdk::shape_text(prediction.sizes()) + ", the field '" +
                    inputs_[*target_].name + "' has " + std::to_string(predicted_scale_->mean.size(2)) + " channels");
  }
  return prediction.to(at::kDouble).mul(predicted_scale_->std).add(predicted_scale_->mean).to(prediction.scalar_type());
}

std::vector<at::Tensor> Inference::ask(std::span<const uint64_t> keys, std::span<const at::Tensor> fields) {
  try {
    return target_ ? model_->predict(step_, keys, fields)
                   : model_->step(HR_EVAL, step_, keys, fields, /*want_outputs=*/true).outputs;
  } catch (const Error& problem) {
    // A model need not look at all of them: whether one is missing shows here.
    const bool for_memory = problem.exit_code() == Exit::does_not_fit || problem.exit_code() == Exit::resumable;
    for (size_t i = 0; i < fields.size() && !for_memory; ++i) {
      if (fields[i].defined() || target_ == i) continue;
      throw Error(Exit::bad_input, "infer",
                  "input '" + inputs_[i].name + "' was not given, and the model fails: " + problem.what());
    }
    throw;
  }
}

std::vector<at::Tensor> Inference::run(std::span<const at::Tensor> inputs) {
  const at::NoGradGuard no_grad;
  const int64_t samples = require_suitable(inputs);
  const std::vector<at::Tensor> fields = standardised(inputs);
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < static_cast<uint64_t>(samples); ++i) keys.push_back(hr_sample_key(seed_, 0, 0, i));
  std::vector<at::Tensor> outputs = ask(keys, fields);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    outputs[i] = outputs[i].to(at::kCPU);
    if (predicted_ == i && predicted_scale_) outputs[i] = as_measured(outputs[i]);
    outputs[i] = outputs[i].contiguous();
    // A model may give an input as it came; the caller's memory is borrowed for this call alone.
    const auto shares = [&](const at::Tensor& input) { return input.defined() && outputs[i].is_alias_of(input); };
    if (std::ranges::any_of(inputs, shares)) outputs[i] = outputs[i].clone();
  }
  return outputs;
}

void Inference::describe_outputs() {
  std::vector<at::Tensor> zeros;
  for (const Field& field : inputs_) {
    std::vector<int64_t> shape = field.shape;
    shape.insert(shape.begin(), 1);
    zeros.push_back(at::zeros(shape, at::toScalarType(field.dtype)));
  }
  const std::vector<at::Tensor> given = run(zeros);
  for (size_t i = 0; i < given.size(); ++i) {
    const OutputInfo& info = model_->outputs()[i];
    Output& output = outputs_.emplace_back();
    output.name = info.name;
    output.unit = info.unit;
    output.role = info.role;
    output.given = given[i].defined();
    if (predicted_ == i) output.field = target_;
    if (!output.given) continue;
    output.dtype = at::getDLDataType(given[i]);
    // An output that is one number for all samples has no row a sample.
    if (given[i].dim() > 0) output.shape = given[i].sizes().slice(1).vec();
  }
}

}  // namespace headroom
