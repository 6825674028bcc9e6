// model.plugin = "python": an nn.Module of a user's file, unchanged, as a model of the runner. dataset.hpp has
// data.source = "python".
#include <ATen/DLConvertor.h>
#include <algorithm>
#include <cmath>
#include <optional>

#include "dataset.hpp"
#include "draws.hpp"
#include "headroom/model.hpp"
#include "headroom/sdk/shape_text.hpp"
#include "interpreter.hpp"
#include "module_files.hpp"

namespace headroom::python {

namespace {

using namespace headroom::sdk;

constexpr uint64_t kWindowDraws = 0x77696E646F77u;  // the stream of draws that have no samples

class PythonModel {
 public:
  static constexpr uint32_t capabilities = HR_MODEL_FP64 | HR_MODEL_BF16 | HR_MODEL_FP16 | HR_RNG_KEYED;

  static OptionList options() {
    return {
        opt_path("file").required().help("the Python file that defines the module"),
        opt_string("class").required().help("the torch.nn.Module of the file, or a function that gives one"),
        opt_open_table("args").def("{}").help("what the class is called with, by name"),
        opt_strings("inputs").def("[]").help("fields that forward takes, in its order"),
        opt_string("target").def("").help("the field that the loss compares the output with"),
        opt_string("loss").def("").help("mse, mae, huber, cross_entropy, or a function (outputs, batch) of the "
                                        "file; left out: its function loss"),
        opt_string("samples")
            .def("auto")
            .choices({"auto", "independent", "coupled"})
            .help("whether samples of a batch influence each other; auto: tried with samples that are made up"),
        opt_bool("compile").def("false").help("steps run code that torch.compile makes; only where nothing is drawn"),
        opt_path("python").help("a Python program or virtual environment; left out: the active one, else that "
                                "of LibTorch")};
  }

  static std::vector<ModelFile> files(const Host&, const Options& options) {
    return module_files(options.path("file"), "model.options.file");
  }

  PythonModel(const Host& host, const Options& options, const Fields& fields, uint64_t seed)
      : host_(host), fields_(fields), seed_(seed), target_(options.string("target")) {
    const std::vector<ModelFile> known = module_files(options.path("file"), "model.options.file");
    start_interpreter(options.has("python") ? options.path("python") : std::filesystem::path());
    intercept_draws();
    const Gil gil;
    std::vector<std::string> names;
    for (const Field& field : fields) names.push_back(field.name);
    std::vector<Object> arguments;
    arguments.push_back(text(known.front().path));
    arguments.push_back(text(options.string("class")));
    arguments.push_back(text(options.open_table("args")));
    arguments.push_back(texts(options.list_string("inputs")));
    arguments.push_back(text(target_));
    arguments.push_back(text(options.string("loss")));
    arguments.push_back(texts(names));
    arguments.push_back(unsigned_integer(seed));
    model_ = call_adapter(log_, "create", std::move(arguments));
    try_out(options.string("samples"));
    describe(known);
    if (options.boolean("compile")) {
      call("compile_steps", boolean(!training_.empty() || !evaluation_.empty()));
      compiled_ = true;
    }
    call_adapter(log_, "ready", {});
  }

  std::vector<Parameter> parameters() const {
    const Gil gil;
    std::vector<Parameter> list;
    for (const Object& row : to_items(call("tensors"))) {
      const std::vector<Object> parts = to_items(row);
      Parameter parameter{.name = to_text(parts.at(0)), .tensor = to_tensor(parts.at(1))};
      parameter.kind = static_cast<hr_param_kind>(to_integer(parts.at(2)));
      if (parameter.kind == HR_PARAMETER) {
        parameter.group = to_text(parts.at(4));
        parameter.lr = to_number(parts.at(5));
        parameter.lr_scale = to_number(parts.at(6));
        parameter.weight_decay_scale = to_number(parts.at(7));
        parameter.frozen_until_step = to_integer(parts.at(3)) != 0 ? to_integer(parts.at(8)) : INT64_MAX;
      }
      list.push_back(std::move(parameter));
    }
    return list;
  }

  std::vector<Output> outputs() const {
    std::vector<Output> list;
    for (const std::string& name : outputs_) list.push_back({name, name == "target" ? HR_TARGET : HR_PREDICTION});
    return list;
  }
  std::vector<Metric> metrics() const {
    std::vector<Metric> list;
    for (const std::string& name : metrics_) list.push_back({.name = name});
    return list;
  }
  std::vector<ClassScores> classes() const {
    if (classes_ == 0) return {};
    return {{.output = "prediction", .count = classes_, .field = target_}};
  }
  uint32_t model_capabilities() const { return capabilities | (coupled_ ? HR_COUPLES_SAMPLES : 0u); }

  StepOutput step(const Call& call, const Batch& batch) {
    remember(call);
    const auto scope = keyed(DrawScope::Pass::forward, call.training() ? training_ : evaluation_);
    const Gil gil;
    std::vector<Object> tensors;
    for (const Field& field : fields_) tensors.push_back(tensor(batch[field.name]));
    const Object result = this->call("step", boolean(call.training()), tuple(std::move(tensors)),
                                     integer(static_cast<int64_t>(call.count())), boolean(call.wants_outputs()),
                                     boolean(call.wants_metrics()));
    if (call.training()) log_remark(call.step());
    return output_of(to_items(result));
  }

  void backward(const at::Tensor& loss) {
    {
      const auto scope = keyed(DrawScope::Pass::backward, training_);
      try {
        loss.backward();  // the lock is free: Python's own functions in the graph take it
      } catch (const c10::OutOfMemoryError&) {
        collect();
        throw;
      } catch (const c10::Error& problem) {
        throw Error(HR_INTERNAL, problem.what_without_backtrace());
      } catch (const std::bad_alloc&) {
        collect();
        throw;
      } catch (const std::exception& problem) {  // LibTorch's of a Python exception, which waits in this thread
        const Gil gil;
        throw_python_error(log_, problem.what());
      }
    }
    if (!has_buffers_) return;
    const Gil gil;
    this->call("commit");
  }

  uint64_t trim(int) {
    collect();
    return 0;
  }

 private:
  template <class... Arguments>
  Object call(const char* function, Arguments... arguments) const {
    std::vector<Object> all;
    all.push_back(model_);
    (all.push_back(std::move(arguments)), ...);
    return call_adapter(log_, function, std::move(all));
  }

  // What only cycles of Python objects hold.
  void collect() const {
    const Gil gil;
    call_adapter(log_, "collect", {});
  }

  // nullopt where nothing draws: code cannot be compiled in a scope.
  std::optional<DrawScope> keyed(DrawScope::Pass pass, const DrawPlan& plan) const {
    if (compiled_) return std::nullopt;
    return std::optional<DrawScope>(std::in_place, pass, keys_, window_key_, plan);
  }

  void log_remark(int64_t step) const {
    const std::string sentence = to_text(call("remark", integer(step)));
    if (!sentence.empty()) host_.warn(sentence);
  }

  // Backward may run after `call` is gone.
  void remember(const Call& call) {
    keys_.clear();
    for (uint64_t i = 0; i < call.count(); ++i) keys_.push_back(call.key(i));
    window_key_ = hr_philox64(seed_, kWindowDraws, call.training() ? static_cast<uint64_t>(call.step()) + 1 : 0);
  }

  StepOutput output_of(const std::vector<Object>& parts) const {
    StepOutput output{.loss_sum = to_tensor(parts.at(0)), .weight = to_tensor(parts.at(1))};
    if (const at::Tensor table = to_tensor(parts.at(2)); table.defined()) {
      for (int64_t i = 0; i < table.size(0); ++i) output.metrics.push_back({table[i][0], table[i][1]});
    }
    for (std::size_t i = 3; i < parts.size(); ++i) output.outputs.push_back(to_tensor(parts[i]));
    return output;
  }

  // -- what the module is, found with samples that are made up --

  // Sample i is the same for any count.
  at::Tensor made_up(const Field& field, int64_t first, int64_t count) const {
    std::vector<int64_t> shape{3};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    at::Generator generator = at::detail::createCPUGenerator(seed_);
    const auto type = at::toScalarType(field.dtype);
    at::Tensor all = at::isFloatingType(type) ? at::randn(shape, generator, at::TensorOptions(at::kFloat))
                                              : at::randint(2, shape, generator, at::TensorOptions(type));
    return all.narrow(0, first, count).clone();
  }

  std::pair<double, double> trial(bool training, int64_t first, int64_t count, DrawPlan::Shapes* seen) {
    std::vector<uint64_t> keys;
    for (int64_t i = 0; i < count; ++i) keys.push_back(hr_sample_key(seed_, 0, 0, static_cast<uint64_t>(first + i)));
    std::vector<Object> tensors;
    for (const Field& field : fields_) tensors.push_back(tensor(made_up(field, first, count)));
    const DrawScope scope(DrawScope::Pass::forward, keys, seed_, training ? training_ : evaluation_, seen);
    const Object result = call("trial", boolean(training), tuple(std::move(tensors)), integer(count));
    const std::vector<Object> numbers = to_items(result);
    return {to_number(numbers.at(0)), to_number(numbers.at(1))};
  }

  DrawPlan plan_of(bool training) {
    DrawPlan::Shapes two, three;
    trial(training, 0, 2, &two);
    trial(training, 0, 3, &three);
    return {std::move(two), std::move(three)};
  }

  void try_out(const std::string& samples) {
    try {
      call("begin_trial");
      evaluation_ = plan_of(false);
      training_ = plan_of(true);
      const bool changes_the_next = depends_on_steps_before();
      coupled_ = samples == "coupled" || (samples == "auto" && (changes_the_next || couples()));
    } catch (const Error& problem) {
      if (problem.status() == HR_OUT_OF_MEMORY) throw;
      if (samples == "auto") {
        throw Error(problem.status(),
                    std::string(problem.what()) + " (tried with samples that are made up: " + fields_text() + ')');
      }
      host_.warn(std::string("the module could not be tried with samples that are made up: ") + problem.what());
      coupled_ = samples == "coupled";
    }
    call("end_trial");
  }

  // Two samples together and apart: a loss that is no sum over samples, and a module that needs more than one. A layer
  // that is known for it needs no trial: what comes behind may hide it.
  bool couples() {
    if (const std::string layer = coupling_layer(); !layer.empty()) {
      why_whole_ += ", in " + layer;
      return true;
    }
    const auto [together, weight] = trial(true, 0, 2, nullptr);
    const Quiet quiet(*this);
    try {
      const auto [first, first_weight] = trial(true, 0, 1, nullptr);
      const auto [second, second_weight] = trial(true, 1, 1, nullptr);
      if (!std::isfinite(together) || !std::isfinite(first) || !std::isfinite(second)) return false;
      return std::abs(together - first - second) > 1e-4 * (std::abs(first) + std::abs(second)) + 1e-6 ||
             std::abs(weight - first_weight - second_weight) > 1e-6 * std::abs(weight);
    } catch (const Error& problem) {
      if (problem.status() == HR_OUT_OF_MEMORY) throw;
      why_whole_ += std::string("; one alone fails (") + problem.what() + ")";
      return true;
    }
  }

  // The same samples twice. Where the second step gives something else, it counts how many steps there were.
  bool depends_on_steps_before() {
    const auto loss = [&] { return trial(true, 0, 2, nullptr).first; };
    const auto differ = [](double a, double b) {
      return std::isfinite(a) && std::isfinite(b) && std::abs(a - b) > 1e-6 * std::abs(a);
    };
    call("keep_buffers");
    const double once = loss(), again = loss();
    const std::string buffer = to_text(call("changed_buffer"));
    bool through_buffer = false;
    if (differ(once, again)) {
      call("restore_buffers");
      through_buffer = !differ(once, loss());
      if (!through_buffer) {
        host_.warn(
            "two steps with the same samples and buffers differ: what a step counts in attributes of Python, or draws "
            "from a generator of its own, is in no checkpoint; keep it in a buffer");
      }
    } else {  // what has settled changes little by itself
      if (buffer.empty()) return false;
      call("disturb_buffers");
      through_buffer = differ(once, loss());
      if (!through_buffer) return false;
    }
    why_whole_ = "each step changes the next one";
    if (through_buffer) why_whole_ += ", through the buffer '" + buffer + "'";
    return true;
  }

  // While failing is an answer, no traceback is logged.
  struct Quiet {
    explicit Quiet(PythonModel& of) : model(of) { model.log_ = nullptr; }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;
    ~Quiet() { model.log_ = &model.host_; }
    PythonModel& model;
  };

  std::string coupling_layer() const { return to_text(call("coupling_layer")); }

  std::string fields_text() const {
    std::string all;
    for (const Field& field : fields_) all += (all.empty() ? "" : ", ") + field.name + ' ' + shape_text(field.shape);
    return all + " a sample; where only real ones work, set model.options.samples to independent or coupled";
  }

  void describe(const std::vector<ModelFile>& known) {
    const std::vector<Object> parts = to_items(call("description"));
    outputs_ = to_texts(parts.at(0));
    metrics_ = to_texts(parts.at(1));
    classes_ = to_integer(parts.at(2));
    if (coupled_) host_.info(why_whole_ + ": a batch is never divided");
    if (const std::string mean = to_text(parts.at(3)); !mean.empty()) host_.info(mean);
    for (const std::string& file : to_texts(parts.at(4))) {
      const bool is_known = std::ranges::any_of(known, [&](const ModelFile& one) {
        std::error_code ignored;
        return std::filesystem::equivalent(one.path, file, ignored);
      });
      if (!is_known)
        host_.warn(file +
                   " is imported in a way that Headroom does not see: a change of it is not noticed when a run "
                   "is resumed");
    }
    for (const Parameter& parameter : parameters()) has_buffers_ = has_buffers_ || parameter.kind != HR_PARAMETER;
  }

  Host host_;
  const Host* log_ = &host_;  // of tracebacks
  Fields fields_;
  uint64_t seed_;
  std::string target_;
  std::string why_whole_ = "the samples of a batch influence each other";
  Object model_;
  DrawPlan training_, evaluation_;
  bool coupled_ = false, has_buffers_ = false, compiled_ = false;
  std::vector<std::string> outputs_, metrics_;
  int64_t classes_ = 0;
  std::vector<uint64_t> keys_;
  uint64_t window_key_ = 0;
};

}  // namespace

}  // namespace headroom::python

HEADROOM_PLUGIN(.id = "python", .version = "1.0",
                .summary = "A torch.nn.Module or a Dataset of your own Python file, unchanged",
                .interfaces = {headroom::sdk::model<headroom::python::PythonModel>(),
                               headroom::sdk::datasource<headroom::python::PythonSource>()});
