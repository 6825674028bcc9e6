// A model for tests of the loop: a small network with dropout at two sites, a loss over valid steps only, a buffer and
// state beside its tensors. Options turn it into the mistakes the tests must notice. HEADROOM_TEST_PAUSE =
// "train:STEP:FILE" (or eval) makes it write FILE in that step and wait until somebody removes it. While the file
// HEADROOM_TEST_SLOW is there, each training step takes 50 ms longer. HEADROOM_TEST_FAULT = "KIND:STEP:SAMPLES" is a
// mistake from that training step on: "crash", "hoard" (memory without end, for more than SAMPLES at once), "short" (no
// memory for more than SAMPLES at once) or "keep" (no memory until the hidden layer is computed again in backward).
// Built twice: with TRIAL_GENERATOR_MODEL as trial_generator_model, which says that it draws from the sequential
// generator.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "headroom/model.hpp"

namespace {

using namespace headroom::sdk;

// The sanitizers leave it to the kernel.
[[gnu::no_sanitize("address"), gnu::no_sanitize("undefined")]] void crash() {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
}

struct FailsBackward : torch::autograd::Function<FailsBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list) {
    TORCH_CHECK(false, "a graph that cannot be walked");
  }
};

#ifdef TRIAL_GENERATOR_MODEL
constexpr uint32_t randomness_capability = HR_RNG_GENERATOR;
#else
constexpr uint32_t randomness_capability = HR_RNG_KEYED;
#endif

class TrialModel : public torch::nn::Module {
 public:
  static constexpr uint32_t capabilities = HR_MODEL_FP64 | HR_MODEL_BF16 | HR_MODEL_FP16 | randomness_capability;
  static constexpr auto recompute_kinds = recomputes("input", "hidden");

  static OptionList options() {
    return {opt_i64("hidden").def(8).min(1).help("width"),
            opt_f64("dropout").def(0.0).min(0).max(1).help("at the input and after the hidden layer"),
            opt_string("randomness")
                .def("keyed")
                .choices({"keyed", "sequential"})
                .help("sequential is the mistake, unless it is declared"),
            opt_string("loss").def("sum").choices({"sum", "mean"}).help("mean is the mistake"),
            opt_f64("loss_factor").def(1.0).help("times the loss; its gradients alone tell"),
            opt_string("mistake")
                .def("none")
                .choices({"none",         "detach",          "cut",
                          "backward",     "replace_one",     "replace_all",
                          "lazy",         "new_leaf",        "clock",
                          "eval",         "negative_weight", "no_weight",
                          "autograd_off", "shapes",          "breaks_backward",
                          "exit",         "couple",          "keep",
                          "keep_memory",  "needs_two",       "no_rows",
                          "not_a_number", "refuse_fields",   "mean_metric"})
                .help("what a step does wrong"),
            opt_bool("remember").def(false).help("the loss depends on how often step() was called"),
            opt_bool("evaluation_leaves_traces").def(false).help("it counts calls and drops units as training does"),
            opt_bool("count_calls").def(true).help("a buffer and its state change in training passes"),
            opt_i64("freeze_until").def(0).min(0).help("step from which the hidden layer is trained"),
            opt_i64("rare").def(0).min(0).help(
                "a parameter that one of so many samples uses, by chance, and that has no gradient without such a one; "
                "0: there is none"),
            opt_bool("drawn").def(false).help("outputs have an axis of channels, so that a report draws them")};
  }

  static std::vector<Input> inputs(const Options&) {
    return {{.name = "x", .shape = {any_size, 3}},
            {.name = "y", .shape = {any_size}},
            {.name = "valid", .dtype = u8, .shape = {any_size}}};
  }

  TrialModel(const Options& options, const Fields& fields)
      : dropout_(options.f64("dropout")),
        keyed_(options.string("randomness") == "keyed"),
        mean_(options.string("loss") == "mean"),
        loss_factor_(options.f64("loss_factor")),
        mistake_(options.string("mistake")),
        remember_(options.boolean("remember")),
        evaluation_leaves_traces_(options.boolean("evaluation_leaves_traces")),
        count_calls_(options.boolean("count_calls")),
        freeze_until_(options.i64("freeze_until")),
        rare_uses_(static_cast<uint64_t>(options.i64("rare"))),
        drawn_(options.boolean("drawn")) {
    if (mistake_ == "refuse_fields") invalid("the field 'x' must have 5 channels");
    const int64_t inputs = fields.at("x").shape.back(), hidden = options.i64("hidden");
    hidden_ = register_module("hidden", torch::nn::Linear(inputs, hidden));
    head_ = register_module("head", torch::nn::Linear(hidden, 1));
    if (rare_uses_ > 0) rare_ = register_parameter("rare", torch::full({1 << 12}, 0.5));
    if (mistake_ == "clock") begin_as_time_tells();
    seen_ = register_buffer("seen", torch::zeros({1}, torch::kDouble));
    if (const char* pause = std::getenv("HEADROOM_TEST_PAUSE")) pause_ = pause;
    if (const char* file = std::getenv("HEADROOM_TEST_SLOW")) slow_while_ = file;
    if (const char* fault = std::getenv("HEADROOM_TEST_FAULT")) read_fault(fault);
  }

  void attributes(headroom::sdk::Parameter& parameter) {
    if (parameter.name.starts_with("hidden.")) parameter.frozen_until_step = freeze_until_;
    if (parameter.name.ends_with(".bias")) parameter.weight_decay_scale = 0.0;
  }

  std::vector<Output> outputs() const {
    return {
        {.name = "prediction", .unit = "m"}, {.name = "target", .role = HR_TARGET}, {.name = "mask", .role = HR_MASK}};
  }
  std::vector<Metric> metrics() const {
    return {{.name = "mae", .unit = "m"},
            {.name = "rmse", .unit = "m", .reduction = HR_ROOT_MEAN},
            {.name = "closeness", .better = HR_HIGHER}};
  }

  StepOutput step(const Call& call, const Batch& batch) {
    pause_when_asked(call);
    fail_when_asked(call);
    err_before_forward(batch);
    const at::Tensor x = checkpoint(
        call, "input",
        [this](const Call& same, TensorSpan inputs, TensorSpan) { return drop(same, "input"_site, inputs[0]); },
        {batch.at("x")}, {});
    const at::Tensor hidden =
        checkpoint(call, "hidden",
                   [this](const Call& same, TensorSpan inputs, TensorSpan params) {
                     return drop(same, "hidden"_site, torch::tanh(torch::linear(inputs[0], params[0], params[1])));
                   },
                   {x}, {hidden_->weight, hidden_->bias});
    at::Tensor prediction = head_->forward(mistake_ == "cut" ? hidden.detach() : hidden).squeeze(-1);
    if (rare_uses_ > 0) prediction = add_rare(call, prediction);
    if (mistake_ == "lazy") prediction = prediction + late_module().forward(hidden).squeeze(-1);
    if (mistake_ == "couple" && !call.training()) prediction = prediction - prediction.mean(0, /*keepdim=*/true);
    if (mistake_ == "keep") hoard_.push_back(torch::ones({1 << 10}));
    if (mistake_ == "keep_memory") kept_.emplace_back(size_t{1} << 20, 'k');
    const at::Tensor valid = batch.at("valid").ne(0), error = torch::where(valid, prediction - batch.at("y"), 0.0);
    const at::Tensor count = valid.sum().to(torch::kDouble);
    at::Tensor loss = error.square().sum() * loss_factor_;
    if (count_calls_ && leaves_traces(call)) count_call(call);
    if (remember_) loss = loss * (1.0 + 0.01 * static_cast<double>(calls_ % 7));
    const at::Tensor absolute = error.abs().sum();
    StepOutput result{loss,
                      count,
                      {prediction, batch.at("y"), valid},
                      {{absolute, count}, {error.square().sum(), count}, {-absolute, count}}};
    if (mistake_ == "mean_metric") result.metrics[0] = {absolute / count, 1.0};
    if (mistake_ == "no_rows") result.outputs[0] = prediction.mean(0);
    if (drawn_) {
      for (at::Tensor& output : result.outputs) output = output.unsqueeze(-1);
    }
    if (mean_) result.loss_sum = loss / count, result.weight = 1.0;
    if (call.training()) err_after_forward(result);
    return result;
  }

  std::string save_state() const { return std::to_string(calls_); }
  void load_state(std::string_view bytes) { calls_ = std::stoull(std::string(bytes)); }

 private:
  static void replace(at::Tensor& parameter) { parameter = parameter.detach().clone().set_requires_grad(true); }
  // A test has no use for a clock: the next model of this process is another all the same.
  void begin_as_time_tells() {
    static double time = 0.0;
    const at::NoGradGuard no_grad;
    head_->bias.fill_(time += 1.0);
  }
  torch::nn::LinearImpl& late_module() {
    if (!late_) late_ = register_module("late", torch::nn::Linear(hidden_->weight.size(0), 1));
    late_->to(hidden_->weight.scalar_type());
    return *late_;
  }
  void err_before_forward(const Batch& batch) {
    if (mistake_ == "exit") std::exit(0);
    if (mistake_ == "needs_two") TORCH_CHECK(batch.at("x").size(0) > 1, "one value a channel is too few");
    if (mistake_ == "eval") eval();
    if (mistake_ == "shapes") batch.at("x").matmul(at::ones({5, 5}));
    if (mistake_ == "replace_one") replace(head_->weight);
    if (mistake_ != "replace_all") return;
    for (at::Tensor* parameter : {&head_->weight, &head_->bias, &hidden_->weight, &hidden_->bias}) replace(*parameter);
  }
  void err_after_forward(StepOutput& result) const {
    if (mistake_ == "detach") result.loss_sum = result.loss_sum.detach();
    if (mistake_ == "new_leaf") result.loss_sum = result.loss_sum.detach() * torch::ones({}).requires_grad_();
    if (mistake_ == "backward") result.loss_sum.backward();
    if (mistake_ == "negative_weight") result.weight = -1.0;
    if (mistake_ == "no_weight") result.weight = 0.0;
    if (mistake_ == "not_a_number") result.loss_sum = (result.loss_sum * 0.0 - 1.0).log();
    if (mistake_ == "autograd_off") torch::GradMode::set_enabled(false);
    if (mistake_ == "breaks_backward") result.loss_sum = FailsBackward::apply(result.loss_sum);
  }

  at::Tensor add_rare(const Call& call, const at::Tensor& prediction) const {
    at::Tensor uses = torch::zeros({prediction.size(0), 1}, prediction.scalar_type());
    bool any = false;
    for (uint64_t i = 0; i < call.count(); ++i) {
      if (call.key(i) % rare_uses_ != 0) continue;
      uses[static_cast<int64_t>(i)][0] = 1.0;
      any = true;
    }
    return any ? prediction + uses * rare_.mean() : prediction;
  }
  at::Tensor drop(const Call& call, uint64_t site, const at::Tensor& x) const {
    if (keyed_) return dropout(call, site, x, dropout_);
    return torch::dropout(x, dropout_, leaves_traces(call));
  }
  bool leaves_traces(const Call& call) const { return call.training() || evaluation_leaves_traces_; }
  void count_call(const Call& call) {
    const at::NoGradGuard no_grad;
    seen_.add_(static_cast<double>(call.count()));
    ++calls_;
  }
  void pause_when_asked(const Call& call) {
    if (!slow_while_.empty() && call.training() && std::filesystem::exists(slow_while_))
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::string here = (call.training() ? "train:" : "eval:") + std::to_string(call.step()) + ":";
    if (!pause_.starts_with(here)) return;
    const std::filesystem::path file = pause_.substr(here.size());
    pause_.clear();
    std::ofstream(file) << "waiting\n";
    for (int i = 0; i < 3000 && std::filesystem::exists(file); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  void read_fault(const char* text) {
    std::array<char, 16> kind{};
    if (std::sscanf(text, "%15[a-z]:%lld:%lld", kind.data(), &fault_step_, &fault_samples_) >= 2) fault_ = kind.data();
  }
  void fail_when_asked(const Call& call) {
    if (fault_.empty() || !call.training() || static_cast<long long>(call.step()) < fault_step_) return;
    if (fault_ == "crash") crash();
    if (fault_ == "short" && static_cast<long long>(call.count()) > fault_samples_)
      TORCH_CHECK_WITH(OutOfMemoryError, false, "not enough memory: you tried to allocate 7 bytes");
    if (fault_ == "keep" && !call.recomputes("hidden"))
      TORCH_CHECK_WITH(OutOfMemoryError, false, "not enough memory: you tried to allocate 7 bytes");
    while (fault_ == "hoard" && static_cast<long long>(call.count()) > fault_samples_) {
      hoard_.push_back(torch::ones({1 << 18}));
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  }

  double dropout_;
  bool keyed_, mean_;
  double loss_factor_;
  std::string mistake_;
  bool remember_, evaluation_leaves_traces_, count_calls_;
  int64_t freeze_until_;
  uint64_t rare_uses_;
  bool drawn_;
  torch::nn::Linear hidden_{nullptr}, head_{nullptr}, late_{nullptr};
  at::Tensor seen_, rare_;
  uint64_t calls_ = 0;
  std::string pause_, slow_while_, fault_;
  long long fault_step_ = 0, fault_samples_ = 0;
  std::vector<at::Tensor> hoard_;
  std::vector<std::string> kept_;
};

}  // namespace

#ifdef TRIAL_GENERATOR_MODEL
HEADROOM_PLUGIN(.id = "trial_generator_model", .version = "1.0", .summary = "The same, drawing from the generator",
                .interfaces = {headroom::sdk::model<TrialModel>()});
#else
HEADROOM_PLUGIN(.id = "trial_model", .version = "1.0", .summary = "A small network for tests of the loop",
                .interfaces = {headroom::sdk::model<TrialModel>()});
#endif
