#include "train/parity.hpp"

#include <ATen/DLConvertor.h>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <torch/torch.h>

#include "error.hpp"
#include "headroom/random.h"
#include "headroom/sdk/shape_text.hpp"
#include "plugins/torch_model.hpp"
#include "record/safetensors.hpp"
#include "train/tensor_file.hpp"

namespace headroom {
namespace {

// Everything that is wrong, in one error.
class Problems {
 public:
  void add(const std::string& sentence) { sentences_.push_back(sentence); }
  void throw_if_any() const {
    if (sentences_.empty()) return;
    std::string text = sentences_.front();
    if (sentences_.size() > 1) {
      text = std::to_string(sentences_.size()) + " problems:";
      for (const std::string& sentence : sentences_) text += "\n  " + sentence;
    }
    throw Error(Exit::bad_input, "parity", text);
  }

 private:
  std::vector<std::string> sentences_;
};

// A selection by its new names. Spans live as long as the object.
class SelectedTensors {
 public:
  explicit SelectedTensors(const TensorSelection& selection) : selection_(selection), file_(selection.file) {
    for (const TensorBytes& tensor : file_.tensors()) {
      if (!tensor.name.starts_with(selection.prefix)) continue;
      tensors_.emplace(selection.rename + tensor.name.substr(selection.prefix.size()), &tensor);
    }
  }

  const std::map<std::string, const TensorBytes*>& tensors() const { return tensors_; }
  std::string name() const {
    return selection_.file.string() + (selection_.prefix.empty() ? "" : ":" + selection_.prefix);
  }

 private:
  TensorSelection selection_;
  SafetensorsFile file_;
  std::map<std::string, const TensorBytes*> tensors_;
};

// nullopt for an element type that LibTorch lacks.
std::optional<at::Tensor> load(const TensorBytes& bytes) {
  try {
    at::Tensor tensor = at::empty(bytes.shape, at::toScalarType(bytes.dtype));
    // memcpy() must not be given the NULL of an empty tensor.
    if (!bytes.data.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data.data(), bytes.data.size());
    return tensor;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

using BatchTensors = std::map<std::string, at::Tensor>;

// The batch under the names of fields, with the axes the model wants. Keys that cannot be a field are passed over.
class BatchReader {
 public:
  BatchReader(const ParityRequest& request, Problems& problems)
      : request_(request), problems_(problems), stored_(request.batch) {}

  BatchTensors read() {
    // Keys that --field gives another name are no fields under their own.
    std::set<std::string> renamed;
    for (const auto& [name, key] : request_.fields) {
      renamed.insert(key);
      take(name, key, /*asked_for=*/true);
    }
    for (const auto& [key, bytes] : stored_.tensors()) {
      if (!fields_.contains(key) && !renamed.contains(key)) take(key, key, request_.transpositions.contains(key));
    }
    for (const auto& [name, axes] : request_.transpositions) {
      if (!seen_.contains(name)) problems_.add("--transpose names '" + name + "', which is not a field of the batch");
    }
    same_batch_axis();
    return std::move(fields_);
  }

 private:
  void take(const std::string& name, const std::string& key, bool asked_for) {
    seen_.insert(name);
    const auto found = stored_.tensors().find(key);
    if (found == stored_.tensors().end()) {
      problems_.add("--field " + name + "=" + key + ": " + stored_.name() + " has no such key" + what_is_there());
      return;
    }
    std::optional<at::Tensor> tensor = load(*found->second);
    if (!tensor || tensor->dim() == 0) {
      if (asked_for)
        problems_.add("the batch's '" + key + "' cannot be the field '" + name + "': it has no batch axis");
      return;
    }
    fields_[name] = transposed(name, *tensor);
    if (asked_for) asked_for_.insert(name);
  }

  at::Tensor transposed(const std::string& name, const at::Tensor& stored) {
    const auto given = request_.transpositions.find(name);
    if (given == request_.transpositions.end()) return stored;
    const std::vector<int64_t>& axes = given->second;
    std::set<int64_t> each(axes.begin(), axes.end());
    // A set is in order: from 0 to the last axis, each once.
    const bool permutes = !axes.empty() && each.size() == axes.size() && *each.begin() == 0 &&
                          *each.rbegin() + 1 == static_cast<int64_t>(axes.size()) &&
                          static_cast<int64_t>(axes.size()) == stored.dim();
    if (permutes) return stored.permute(axes).contiguous();
    problems_.add("--transpose " + name + ": the order must name each of the axes 0 to " +
                  std::to_string(stored.dim() - 1) + " of " + sdk::shape_text(stored.sizes()) + " once");
    return stored;
  }

  // The fields that the command names decide what the batch axis is; others of another length are passed over.
  void same_batch_axis() {
    std::optional<int64_t> batch;
    for (const std::string& name : asked_for_) {
      const int64_t length = fields_.at(name).size(0);
      if (batch && *batch != length) {
        problems_.add("the field '" + name + "' " + sdk::shape_text(fields_.at(name).sizes()) +
                      " has another batch axis than " + std::to_string(*batch));
      }
      batch = batch.value_or(length);
    }
    // The file may hold more than the batch: most of its fields agree on the length of their batch axis.
    if (!batch) batch = most_common_length();
    if (batch) std::erase_if(fields_, [&](const auto& field) { return field.second.size(0) != *batch; });
    if (fields_.empty()) problems_.add(stored_.name() + " holds no tensor that can be a field" + what_is_there());
  }

  std::optional<int64_t> most_common_length() const {
    std::map<int64_t, int> lengths;
    for (const auto& [name, tensor] : fields_) ++lengths[tensor.size(0)];
    std::optional<int64_t> best;
    for (const auto& [length, count] : lengths) {
      // Of equals the shortest, so that the choice does not depend on the order of keys.
      if (!best || count > lengths.at(*best)) best = length;
    }
    return best;
  }

  std::string what_is_there() const {
    std::string text;
    for (const auto& [key, bytes] : stored_.tensors()) text += (text.empty() ? "; it has " : ", ") + key;
    return text.empty() ? "; it has no key at all" : text;
  }

  const ParityRequest& request_;
  Problems& problems_;
  SelectedTensors stored_;
  BatchTensors fields_;
  std::set<std::string> seen_, asked_for_;
};

// What a data source would have said of these tensors.
std::vector<Field> describe(const BatchTensors& tensors, const ParityOptions& options, Problems& problems) {
  std::vector<Field> fields;
  for (const auto& [name, tensor] : tensors) {
    Field field;
    field.name = name;
    const at::ScalarType stored = tensor.scalar_type();
    // Floating fields are described as float32 however they are stored.
    field.dtype = at::getDLDataType(at::isFloatingType(stored) ? tensor.to(at::kFloat) : tensor);
    // Of one sample: without the batch axis.
    field.shape = tensor.sizes().slice(1).vec();
    field.axes.resize(field.shape.size());
    if (const auto facts = options.fields.find(name); facts != options.fields.end()) {
      field.unit = facts->second.unit;
      field.sample_rate_hz = facts->second.sample_rate_hz;
    }
    fields.push_back(std::move(field));
  }
  for (const auto& [name, facts] : options.fields) {
    if (!tensors.contains(name)) problems.add("[fields." + name + "] describes a field that the batch does not have");
  }
  return fields;
}

// Copies the stored weights over the model's, all or nothing.
void load_weights(const std::vector<TensorSelection>& selections, Model& model, Problems& problems) {
  std::map<std::string, Parameter*> wanted;
  for (Parameter& parameter : model.parameters()) wanted.emplace(parameter.name, &parameter);
  const torch::NoGradGuard no_grad;
  std::set<std::string> given;
  for (const TensorSelection& selection : selections) {
    const SelectedTensors stored(selection);
    if (stored.tensors().empty()) problems.add(stored.name() + " holds no weights");
    for (const auto& [name, bytes] : stored.tensors()) {
      const auto found = wanted.find(name);
      if (found == wanted.end()) {
        problems.add("unknown weight '" + name + "' in " + stored.name() + ": the model has no such tensor");
      } else if (!given.insert(name).second) {
        problems.add("the weight '" + name + "' is given twice, again in " + stored.name());
      } else if (found->second->kind == HR_DERIVED) {
        continue;
      } else if (at::Tensor& tensor = *found->second->tensor; bytes->shape != tensor.sizes()) {
        problems.add("the weight '" + name + "' is " + sdk::shape_text(bytes->shape) + " in " + stored.name() +
                     "; the model's is " + sdk::shape_text(tensor.sizes()));
      } else if (const std::optional<at::Tensor> source = load(*bytes)) {
        // Where a problem is found, what was copied goes with the model: the caller throws.
        tensor.copy_(*source);
      } else {
        problems.add("the weight '" + name + "' in " + stored.name() + " has an element type that LibTorch lacks");
      }
    }
  }
  for (const auto& [name, parameter] : wanted) {
    if (parameter->kind != HR_DERIVED && !given.contains(name)) {
      problems.add("missing weight '" + name + "' " + sdk::shape_text(parameter->tensor->sizes()));
    }
  }
}

void add_metrics(TensorFile& results, const Model& model, const at::Tensor& metrics) {
  // Columns are sum and weight.
  const at::Tensor means = metrics.select(1, 0) / metrics.select(1, 1);
  for (std::size_t i = 0; i < model.metrics().size(); ++i) {
    const MetricInfo& metric = model.metrics()[i];
    const at::Tensor mean = means[static_cast<int64_t>(i)];
    results.add("metric/" + metric.name, metric.reduction == HR_ROOT_MEAN ? mean.sqrt() : mean);
  }
}

// Zeros where the loss does not depend on a parameter; all zeros when nothing counted.
void add_gradients(TensorFile& results, Model& model, const StepResult& step) {
  // Of the mean: other implementations take the gradient of that.
  if (step.weight.item<double>() > 0.0 && step.loss_sum.requires_grad()) model.backward(step.loss_sum / step.weight);
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.kind != HR_PARAMETER || parameter.inert) continue;
    const at::Tensor& gradient = parameter.tensor->grad();
    results.add("grad/" + parameter.name, gradient.defined() ? gradient : at::zeros_like(*parameter.tensor));
  }
}

StepResult one_step(Model& model, const ParityRequest& request, const BatchTensors& tensors) {
  for (Parameter& parameter : model.parameters()) {
    if (parameter.kind == HR_PARAMETER) parameter.tensor->requires_grad_(request.gradients && !parameter.inert);
  }
  std::vector<at::Tensor> batch;
  for (const Field& field : model.fields()) {
    const at::Tensor& tensor = tensors.at(field.name);
    batch.push_back(at::isFloatingType(tensor.scalar_type()) ? tensor.to(request.fp64 ? at::kDouble : at::kFloat)
                                                             : tensor);
  }
  std::vector<uint64_t> keys(static_cast<std::size_t>(batch.front().size(0)));
  // Seed, split and epoch 0: draws of the model are the same in every call.
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = hr_sample_key(0, 0, 0, i);
  const at::AutoGradMode gradients(request.gradients);
  return model.step(request.train ? HR_TRAIN : HR_EVAL, 0, keys, batch, /*want_outputs=*/true);
}

// The model on the batch's fields with the stored weights; NULL when `problems` say why not.
std::unique_ptr<Model> prepare(const ParityRequest& request, const Library& library, std::vector<Field> fields,
                               const ParityOptions& options, Problems& problems) {
  const OptionValues values = check_options(to_option_table(library.model_torch()->options), &options.model,
                                            "model.options", "model plugin '" + library.id() + "'");
  std::unique_ptr<Model> model;
  try {
    model = std::make_unique<Model>(library, values, std::move(fields), /*seed=*/0);
  } catch (const Error& error) {
    // A model that does not suit the fields is one problem among others.
    if (error.exit_code() != Exit::bad_input) throw;
    problems.add(error.what());
    return nullptr;
  }
  if (request.fp64 && (model->capabilities() & HR_MODEL_FP64) == 0) {
    problems.add("--double: the model '" + model->id() + "' does not work in float64");
    return model;
  }
  if (request.fp64) model->to(at::kCPU, at::kDouble);
  load_weights(request.weights, *model, problems);
  return model;
}

}  // namespace

ParityResult run_parity(const ParityRequest& request) {
  const ParityOptions options = ParityOptions::load(request.options);
  const Library library = Library::load(find_plugin(request.model, request.plugin_dirs));
  if (library.model_torch() == nullptr) {
    throw Error(Exit::bad_input, "parity", "'" + request.model + "' is not a model plugin: " + library.path().string());
  }
  Problems problems;
  const BatchTensors tensors = BatchReader(request, problems).read();
  std::vector<Field> fields = describe(tensors, options, problems);
  const std::unique_ptr<Model> model = prepare(request, library, std::move(fields), options, problems);
  // All problems are reported at once; `model` may be NULL until here.
  problems.throw_if_any();

  const StepResult step = one_step(*model, request, tensors);
  TensorFile results;
  results.add("loss_sum", step.loss_sum);
  results.add("weight", step.weight);
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i].defined()) results.add(model->outputs()[i].name, step.outputs[i]);
  }
  add_metrics(results, *model, step.metrics);
  if (request.gradients) add_gradients(results, *model, step);
  results.write(request.out);
  return {step.loss_sum.item<double>(), step.weight.item<double>(), results.size()};
}

}  // namespace headroom
