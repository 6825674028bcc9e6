// The C++ SDK for LibTorch model plugins. Write an ordinary class with the members below and name it in
// HEADROOM_PLUGIN; the SDK makes the C tables of abi.h. Header-only.
//
//   class Net : public torch::nn::Module {       // or a class with `torch::nn::Module& module()`,
//    public:                                     // or with `std::vector<Parameter> parameters()`
//     static constexpr uint32_t capabilities = HR_MODEL_FP64 | HR_RNG_KEYED;   // left out: 0
//     static constexpr auto recompute_kinds = recomputes("layer");   // for checkpoint(); left out: none
//     static OptionList options();               // keys of [model.options]; may be left out
//     Net(const Host& host, const Options& options, const Fields& fields, uint64_t seed);   // or (options, fields)
//     std::vector<Output> outputs() const;       // what a step gives beside the loss; left out: nothing
//     std::vector<Metric> metrics() const;       // numbers of an evaluation; left out: none
//     StepOutput step(const Call& call, const Batch& batch);   // one forward pass; the host calls backward()
//     static std::vector<Input> inputs(const Options&);   // the fields it takes, for `headroom plugins check`
//                                                // without an experiment (sdk/inputs.hpp); left out: not stepped there
//     uint32_t model_capabilities() const;       // of this one model, where its options decide; left out: capabilities
//     void backward(const at::Tensor& loss);     // runs the backward pass itself; left out: the host does
//     static std::vector<ModelFile> files(const Host&, const Options&);   // files it is made of; left out: none
//     std::vector<ClassScores> classes() const;  // outputs that hold class scores (sdk/classes.hpp); left out: none
//     void balance(const std::string& output, std::span<const uint64_t> counts);   // how often each class occurs
//     void attributes(Parameter& parameter);     // group, scales, freezing, inert, derived; left out: all equal
//     std::string save_state() const;            // left out, with load_state(): nothing beside the tensors
//     void load_state(std::string_view bytes);
//     uint64_t trim(int level);                  // left out: nothing to give back
//   };
//   HEADROOM_PLUGIN(.id = "net", .version = "1.0", .summary = "...", .interfaces = {headroom::sdk::model<Net>()});
//
// The constructor runs on the CPU in float32. LibTorch's generator is seeded with `seed` for it and restored
// afterwards. Parameters are the module's named_parameters(), then its named_buffers(), under their own names; one that
// is registered under several names (tied weights) goes by the first. Parameters and buffers are updated in place,
// never replaced. Before a step the module is put into train() or eval() as the call says, submodules too; those that
// the constructor left in eval() stay there. step() calls neither backward() nor train() nor eval(). One thread calls
// all members, one call at a time. Any of them may throw sdk::Error; a c10::OutOfMemoryError reaches the host as one,
// which frees memory and calls again. TORCH_LIBRARY is forbidden in plugins.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <torch/torch.h>
#include <utility>
#include <vector>

#include "headroom/backward.h"
#include "headroom/capabilities.h"
#include "headroom/model_files.h"
#include "headroom/sdk/call.hpp"
#include "headroom/sdk/classes.hpp"
#include "headroom/sdk/host.hpp"
#include "headroom/sdk/inputs.hpp"
#include "headroom/sdk/keyed.hpp"
#include "headroom/sdk/options.hpp"
#include "headroom/sdk/plugin.hpp"
#include "headroom/sdk/recompute.hpp"
#include "headroom/sdk/seeded_scope.hpp"
#include "headroom/sdk/torch_tag.hpp"
#include "headroom/sdk/training_mode.hpp"

namespace headroom::sdk {

struct Parameter {
  std::string name;
  at::Tensor tensor;
  hr_param_kind kind = HR_PARAMETER;  // HR_BUFFER; HR_DERIVED: recomputed from the options, in no checkpoint
  std::string group = {};             // optimizer group for users to name
  double lr_scale = 1.0;
  double weight_decay_scale = 1.0;
  int64_t frozen_until_step = 0;  // INT64_MAX: never trained
  double lr = 0.0;                // > 0: replaces train.optimizer.lr x lr_scale
  bool inert = false;             // cannot influence the output: kept in checkpoints, neither run nor trained
};

struct Output {
  std::string name;
  hr_role role = HR_PREDICTION;
  std::string unit = {};
};

// A file whose content decides what the model is: part of a run's identity and plan.
struct ModelFile {
  std::string name;  // what sentences call it, the same wherever the file lies
  std::string path;
};

struct Metric {
  std::string name;
  std::string unit = {};
  hr_reduction reduction = HR_MEAN;
  hr_better better = HR_LOWER;
};

namespace detail {

// guard() for code that calls LibTorch: its errors without their C++ backtrace; its OutOfMemoryError as
// HR_OUT_OF_MEMORY.
template <class Body>
hr_status torch_guard(hr_error* error, Body&& body) noexcept {
  return guard(error, [&] {
    try {
      std::forward<Body>(body)();
    } catch (const c10::OutOfMemoryError& problem) {
      throw Error(HR_OUT_OF_MEMORY, problem.what_without_backtrace());
    } catch (const c10::Error& problem) {
      throw Error(HR_INTERNAL, problem.what_without_backtrace());
    }
  });
}

// hr_model behind the C table: the author's object and its description.
template <class T>
struct ModelBox {
  Fields fields;
  std::unique_ptr<T> model;
  std::vector<Parameter> parameters;
  std::vector<Output> outputs;
  std::vector<Metric> metrics;
  std::vector<ClassScores> classes;
  std::vector<NativeScores> native_scores;  // of classes
  TrainingMode training;

  ModelBox(const Host& host, const Options& options, Fields given, uint64_t seed) : fields(std::move(given)) {
    SeededScope scope(seed);
    if constexpr (std::constructible_from<T, const Host&, const Options&, const Fields&, uint64_t>) {
      model = std::make_unique<T>(host, options, fields, seed);
    } else {
      model = std::make_unique<T>(options, fields);
    }
    collect_parameters();
    if constexpr (requires { model->outputs(); }) outputs = model->outputs();
    if constexpr (requires { model->metrics(); }) metrics = model->metrics();
    if constexpr (requires { model->classes(); }) collect_classes();
  }

  static ModelBox* from(hr_model* model) { return reinterpret_cast<ModelBox*>(model); }
  static const ModelBox* from(const hr_model* model) { return reinterpret_cast<const ModelBox*>(model); }

  void collect_parameters() {
    if constexpr (std::derived_from<T, torch::nn::Module>) {
      collect_module(*model);
    } else if constexpr (requires { model->module(); }) {
      collect_module(model->module());
    } else {
      parameters = model->parameters();
    }
    if constexpr (requires { model->attributes(parameters.front()); }) {
      for (Parameter& parameter : parameters) model->attributes(parameter);
    }
  }
  void collect_classes() {
    classes = model->classes();
    for (const ClassScores& scores : classes) {
      const bool is_known = std::any_of(outputs.begin(), outputs.end(),
                                        [&](const Output& output) { return output.name == scores.output; });
      if (!is_known) throw Error(HR_INTERNAL, "classes() names '" + scores.output + "', which outputs() does not");
      if (!scores.names.empty() && static_cast<int64_t>(scores.names.size()) != scores.count)
        throw Error(HR_INTERNAL, "classes() has not one name a class of '" + scores.output + "'");
      native_scores.emplace_back(scores);
    }
  }
  void collect_module(const torch::nn::Module& module) {
    for (const auto& item : module.named_parameters()) add(item.key(), item.value(), HR_PARAMETER);
    for (const auto& item : module.named_buffers()) add(item.key(), item.value(), HR_BUFFER);
  }
  void add(const std::string& name, const at::Tensor& tensor, hr_param_kind kind) {
    const bool is_known = std::any_of(parameters.begin(), parameters.end(),
                                      [&](const Parameter& known) { return known.tensor.is_same(tensor); });
    if (!is_known) parameters.push_back({.name = name, .tensor = tensor, .kind = kind});
  }

  // NULL where the author's class has no module.
  torch::nn::Module* root() {
    if constexpr (std::derived_from<T, torch::nn::Module>) {
      return model.get();
    } else if constexpr (requires { static_cast<torch::nn::Module&>(model->module()); }) {
      return &model->module();
    } else {
      return nullptr;
    }
  }
};

template <class T>
constexpr const char* const* recompute_kinds_of() {
  if constexpr (requires { T::recompute_kinds; }) {
    return T::recompute_kinds.data();
  } else {
    return nullptr;
  }
}

template <class T>
struct ModelTable {
  using Box = ModelBox<T>;

  static hr_status create(const hr_host* host, const hr_value* values, const hr_field* fields, uint32_t field_count,
                          uint64_t seed, hr_model** out, hr_error* error) noexcept {
    return torch_guard(error, [&] {
      auto box =
          std::make_unique<Box>(Host(host), Options(option_table<T>(), values), Fields(fields, field_count), seed);
      *out = reinterpret_cast<hr_model*>(box.release());
    });
  }
  static void destroy(hr_model* model) noexcept { delete Box::from(model); }

  static uint32_t param_count(const hr_model* model) noexcept {
    return static_cast<uint32_t>(Box::from(model)->parameters.size());
  }
  static hr_status param(hr_model* model, uint32_t i, hr_param* out, hr_error* error) noexcept {
    return guard(error, [&] {
      if (i >= param_count(model)) throw Error(HR_NOT_FOUND, "no such parameter");
      Parameter& p = Box::from(model)->parameters[i];
      store(out, {sizeof(hr_param), p.inert ? HR_PARAM_INERT : 0u, p.name.c_str(), p.kind, 0,
                  reinterpret_cast<hr_tensor>(&p.tensor), p.group.c_str(), p.lr_scale, p.lr, p.weight_decay_scale,
                  p.frozen_until_step});
    });
  }
  static uint32_t output_count(const hr_model* model) noexcept {
    return static_cast<uint32_t>(Box::from(model)->outputs.size());
  }
  static hr_status output(const hr_model* model, uint32_t i, hr_output* out, hr_error* error) noexcept {
    return guard(error, [&] {
      if (i >= output_count(model)) throw Error(HR_NOT_FOUND, "no such output");
      const Output& o = Box::from(model)->outputs[i];
      store(out, {sizeof(hr_output), o.role, o.name.c_str(), o.unit.empty() ? nullptr : o.unit.c_str()});
    });
  }
  static uint32_t metric_count(const hr_model* model) noexcept {
    return static_cast<uint32_t>(Box::from(model)->metrics.size());
  }
  static hr_status metric(const hr_model* model, uint32_t i, hr_metric* out, hr_error* error) noexcept {
    return guard(error, [&] {
      if (i >= metric_count(model)) throw Error(HR_NOT_FOUND, "no such metric");
      const Metric& m = Box::from(model)->metrics[i];
      store(out,
            {sizeof(hr_metric), m.reduction, m.name.c_str(), m.unit.empty() ? nullptr : m.unit.c_str(), m.better, 0});
    });
  }

  static hr_status step(hr_model* model, const hr_call* call, const hr_tensor* batch, hr_tensor loss_sum,
                        hr_tensor weight, const hr_tensor* outputs, hr_tensor metrics, hr_error* error) noexcept {
    return torch_guard(error, [&] {
      Box& box = *Box::from(model);
      box.training.set(box.root(), call->mode == HR_TRAIN);
      StepOutput result = box.model->step(Call(call, outputs != nullptr, metrics != nullptr, recompute_kinds_of<T>()),
                                          Batch(box.fields, batch));
      box.training.require(box.root());
      if (!result.loss_sum.defined()) throw Error(HR_INTERNAL, "step() returned no loss_sum");
      tensor(loss_sum) = result.loss_sum;
      tensor(weight) = result.weight.like(result.loss_sum, at::kDouble).detach();
      // Where outputs() is misspelt nobody asks for any.
      if (box.outputs.empty()) require_count("outputs", result.outputs.size(), 0);
      if (outputs != nullptr) give_outputs(box, result, outputs);
      if (metrics != nullptr) tensor(metrics) = metric_table(box, result);
    });
  }

  static hr_status save(hr_model* model, void (*write)(void*, const void*, uint64_t), void* context,
                        hr_error* error) noexcept {
    return torch_guard(error, [&] {
      const std::string bytes = Box::from(model)->model->save_state();
      write(context, bytes.data(), bytes.size());
    });
  }
  static hr_status load(hr_model* model, const void* data, uint64_t bytes, hr_error* error) noexcept {
    return torch_guard(
        error, [&] { Box::from(model)->model->load_state(std::string_view(static_cast<const char*>(data), bytes)); });
  }
  static uint64_t trim(hr_model* model, int32_t level) noexcept {
    uint64_t freed = 0;
    torch_guard(nullptr, [&] { freed = Box::from(model)->model->trim(level); });
    return freed;
  }

  static hr_status list_inputs(const hr_value* values, int32_t (*visit)(void*, const hr_input*), void* context,
                               hr_error* error) noexcept {
    return torch_guard(error, [&] { visit_inputs(T::inputs(Options(option_table<T>(), values)), visit, context); });
  }

  static hr_status scores(const hr_model* model, uint32_t i, hr_class_scores* out, hr_error* error) noexcept {
    return guard(error, [&] { store(out, scores_of(*Box::from(model), i).native()); });
  }
  static hr_status balance(hr_model* model, uint32_t i, const uint64_t* counts, uint64_t count,
                           hr_error* error) noexcept {
    return torch_guard(error, [&] {
      Box& box = *Box::from(model);
      box.model->balance(scores_of(box, i).scores().output, std::span<const uint64_t>(counts, count));
    });
  }
  static const hr_classes* class_table() {
    static const hr_classes table = [] {
      hr_classes filled{sizeof(hr_classes), 0, scores, nullptr};
      if constexpr (requires(T & object, std::span<const uint64_t> counts) { object.balance(std::string(), counts); })
        filled.balance = balance;
      return filled;
    }();
    return &table;
  }

  static uint32_t capabilities_of(const hr_model* model) noexcept {
    return Box::from(model)->model->model_capabilities();
  }
  static hr_status run_backward(hr_model* model, hr_tensor loss, hr_error* error) noexcept {
    return torch_guard(error, [&] { Box::from(model)->model->backward(tensor(loss)); });
  }
  static hr_status list_files(const hr_host* host, const hr_value* values,
                              int32_t (*visit)(void*, const char*, const char*), void* context,
                              hr_error* error) noexcept {
    return torch_guard(error, [&] {
      for (const ModelFile& file : T::files(Host(host), Options(option_table<T>(), values))) {
        if (visit(context, file.name.c_str(), file.path.c_str()) != 0) return;
      }
    });
  }

  static const void* find(std::string_view id) {
    if (id == HR_MODEL_TORCH) {
      static const hr_model_torch table{sizeof(hr_model_torch),
                                        capabilities(),
                                        option_table<T>(),
                                        create,
                                        destroy,
                                        param_count,
                                        param,
                                        output_count,
                                        output,
                                        metric_count,
                                        metric,
                                        step,
                                        recompute_kinds_of<T>()};
      return &table;
    }
    if constexpr (requires(T & object) { object.save_state(); }) {
      if (id == HR_STATE) {
        static const hr_state table{sizeof(hr_state), 0, save, load};
        return &table;
      }
    }
    if constexpr (requires(const Options& options) { T::inputs(options); }) {
      if (id == HR_INPUTS) {
        static const hr_inputs table{sizeof(hr_inputs), 0, list_inputs};
        return &table;
      }
    }
    if constexpr (requires(T & object) { object.classes(); }) {
      if (id == HR_CLASSES) return class_table();
    }
    if constexpr (requires(const T& object) { object.model_capabilities(); }) {
      if (id == HR_CAPABILITIES) {
        static const hr_capabilities table{sizeof(hr_capabilities), 0, capabilities_of};
        return &table;
      }
    }
    if constexpr (requires(T & object, const at::Tensor& loss) { object.backward(loss); }) {
      if (id == HR_BACKWARD) {
        static const hr_backward table{sizeof(hr_backward), 0, run_backward};
        return &table;
      }
    }
    if constexpr (requires(const Host& host, const Options& options) { T::files(host, options); }) {
      if (id == HR_MODEL_FILES) {
        static const hr_model_files table{sizeof(hr_model_files), 0, list_files};
        return &table;
      }
    }
    return nullptr;
  }

 private:
  static const NativeScores& scores_of(const Box& box, uint32_t i) {
    for (const NativeScores& native : box.native_scores) {
      if (i < box.outputs.size() && native.scores().output == box.outputs[i].name) return native;
    }
    throw Error(HR_NOT_FOUND, "this output holds no class scores");
  }
  static at::Tensor& tensor(hr_tensor handle) { return *reinterpret_cast<at::Tensor*>(handle); }
  static constexpr uint32_t capabilities() {
    if constexpr (requires { T::capabilities; }) {
      return T::capabilities;
    } else {
      return 0;
    }
  }
  static void require_count(const char* what, std::size_t returned, std::size_t declared) {
    if (returned != declared) {
      throw Error(HR_INTERNAL, "step() returned " + std::to_string(returned) + ' ' + what + "; the model declares " +
                                   std::to_string(declared));
    }
  }
  static void give_outputs(const Box& box, const StepOutput& result, const hr_tensor* outputs) {
    require_count("outputs", result.outputs.size(), box.outputs.size());
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
      if (outputs[i] != nullptr && result.outputs[i].defined()) tensor(outputs[i]) = result.outputs[i].detach();
    }
  }
  static at::Tensor metric_table(const Box& box, const StepOutput& result) {
    require_count("metrics", result.metrics.size(), box.metrics.size());
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> cells;
    for (const MetricSum& metric : result.metrics) {
      cells.push_back(metric.sum.like(result.loss_sum, at::kDouble).to(at::kDouble).reshape({}));
      cells.push_back(metric.weight.like(result.loss_sum, at::kDouble).to(at::kDouble).reshape({}));
    }
    if (cells.empty()) return at::zeros({0, 2}, result.loss_sum.options().dtype(at::kDouble));
    return at::stack(cells).reshape({-1, 2});
  }
};

}  // namespace detail

// The interfaces of a model class, for HEADROOM_PLUGIN.
template <class T>
constexpr Interface model() {
  Interface interface { .find = &detail::ModelTable<T>::find, .torch_tag = HEADROOM_TORCH_TAG };
  if constexpr (requires(T & object) { object.trim(0); }) interface.trim_model = &detail::ModelTable<T>::trim;
  return interface;
}

}  // namespace headroom::sdk
