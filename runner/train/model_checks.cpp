#include "train/model_checks.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <numeric>
#include <span>

#include "memory/ledger.hpp"
#include "record/numbers.hpp"
#include "train/forward_snapshot.hpp"
#include "train/micro_batches.hpp"
#include "train/setup.hpp"
#include "train/window.hpp"

namespace headroom {

namespace {

// Enough to divide a batch.
constexpr int64_t most_checked_samples = 4;
// Parts of the largest value: in float64; in float32, where sums in another order round otherwise; and of a loss in
// bfloat16 or float16.
constexpr double exact_tolerance = 1e-9, rounded_tolerance = 1e-3, narrow_tolerance = 0.25;

[[noreturn]] void refuse_model(const Setup& setup, const std::string& sentence) {
  throw Error(Exit::plugin, setup.model->id(), sentence);
}

double largest(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0.0 : tensor.to(at::kDouble).abs().max().item<double>();
}

// The largest difference between the pairs, as a part of the largest of all values: a tensor that is 0 but for rounding
// is not judged by itself.
double difference(std::span<const at::Tensor> a, std::span<const at::Tensor> b) {
  double scale = 1e-30, found = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double apart = largest(a[i].to(at::kDouble) - b[i].to(at::kDouble));
    if (std::isnan(apart)) return apart;
    scale = std::max(scale, largest(a[i]));
    found = std::max(found, apart);
  }
  return found / scale;
}

// What a window gave.
struct Trained {
  double loss = 0.0, weight = 0.0;
  std::vector<at::Tensor> gradients;
  std::vector<std::string> without_gradient;
};

// What is checked.
struct Request {
  std::filesystem::path experiment;
  std::vector<Override> overrides;
  std::vector<std::filesystem::path> plugin_dirs;
};

// The experiment as it is loaded for one precision and a few samples.
Experiment experiment_of(const Request& request, const std::string& precision) {
  const int64_t batch = load_experiment(request.experiment, request.overrides).train.batch_size;
  std::vector<Override> overrides = request.overrides;
  // The checks divide batches and recompute calls themselves; without workers no thread is started.
  overrides.insert(overrides.end(), {{"train.precision", precision},
                                     {"train.batch_size", std::to_string(std::min(batch, most_checked_samples))},
                                     {"train.gradient_accumulation_steps", "1"},
                                     {"train.micro_batch", "auto"},
                                     {"data.num_workers", "0"},
                                     {"memory.recompute", "none"}});
  return load_experiment(request.experiment, overrides);
}

// The experiment at one precision, with the first samples of its training split.
class Trial {
 public:
  Trial(const Request& request, const std::string& precision)
      : experiment_(experiment_of(request, precision)),
        data_(prepare_data(experiment_, request.plugin_dirs)),
        setup_(data_),
        batch_(first_batch()),
        snapshot_(*setup_.model, setup_.device) {
    snapshot_.take();
  }

  const Setup& setup() const { return setup_; }
  Model& model() const { return *setup_.model; }
  int64_t samples() const { return static_cast<int64_t>(batch_.count()); }

  // A window in micro-batches of so many samples, from the weights and the state of the beginning.
  Trained train(int64_t micro_batch) {
    // A fixed size: smaller pieces would not be the ones that a check asks for.
    Retry retry({micro_batch, /*adapts=*/false}, setup_.device, setup_.advice(),
                [](const Shortage&, const std::string&) {});
    snapshot_.restore();
    Window window(model(), setup_.device, setup_.dtype, retry);
    // Past every frozen_until_step but INT64_MAX, which means never.
    window.thaw(INT64_MAX - 1);
    window.begin();
    if (!window.add(batch_, 0))
      refuse_model(setup_, "there is no memory for a step of " + std::to_string(samples()) + " samples");
    Trained trained{.weight = window.divide(), .gradients = {}, .without_gradient = window.check().without_gradient()};
    trained.loss = window.sums().loss();
    for (const at::Tensor& gradient : window.gradients()) trained.gradients.push_back(gradient.clone());
    return trained;
  }

  StepResult evaluate(int64_t first, int64_t count) {
    const at::NoGradGuard no_grad;
    const MicroBatchTensors tensors(batch_, first, count, setup_.device, setup_.dtype);
    return model().step(HR_EVAL, 0, tensors.keys, tensors.fields, /*want_outputs=*/true);
  }

  // Copies, for comparisons.
  std::vector<at::Tensor> buffers() const {
    std::vector<at::Tensor> copies;
    for (const Parameter& parameter : model().parameters()) {
      if (parameter.kind == HR_BUFFER) copies.push_back(parameter.tensor->clone());
    }
    return copies;
  }

 private:
  Batch first_batch() const {
    Loader loader(data_.source, data_.splits.train, find_statistics(data_.statistics_request()).normalizer,
                  setup_.loader_options(true));
    loader.seek(0);
    auto batch = loader.next();
    if (!batch || batch->count() == 0)
      throw Error(Exit::data, "check", "the training split has no sample to step with");
    return std::move(*batch);
  }

  Experiment experiment_;
  RunData data_;
  Setup setup_;
  Batch batch_;
  ForwardSnapshot snapshot_;
};

class ModelChecks {
 public:
  explicit ModelChecks(Request request) : request_(std::move(request)), plain_(request_, "fp32") {
    if (has(HR_MODEL_FP64)) exact_.emplace(request_, "fp64");
  }

  std::vector<CheckResult> run() {
    // The others compare with what this one gives, or step as it does.
    if (!check("a step gives loss, weight, outputs and metrics", [&] { whole_ = plain_.train(plain_.samples()); }))
      return list_.take();
    check("a gradient reaches every parameter", [&] { require_gradients(); });
    check("the same step twice gives the same", [&] { require_repeatable(); });
    check("it draws from sample keys alone, or says so", [&] { require_keyed_draws(); });
    check("whole or in pieces, the gradient is the same", [&] { require_divisible(); });
    check("evaluation draws nothing and leaves nothing behind", [&] { require_pure_evaluation(); });
    check("evaluated alone or among others, a sample is the same", [&] { require_samples_apart(); });
    for (const std::string& kind : plain_.model().recompute_kinds())
      check("memory.recompute = [\"" + kind + "\"]: the same gradient", [&] { require_recomputed(kind); });
    for (const auto& [flag, precision] : {std::pair{HR_MODEL_BF16, "bf16"}, std::pair{HR_MODEL_FP16, "fp16"}}) {
      if (has(flag))
        check(std::string("train.precision = \"") + precision + "\": about the same loss",
              [&] { require_narrow(precision); });
    }
    check("what it keeps beside its tensors is saved and loaded", [&] { require_state(); });
    check("a step gives back what it took", [&] { require_no_leak(); });
    return list_.take();
  }

 private:
  bool has(uint32_t capability) const { return (plain_.model().capabilities() & capability) != 0; }
  bool check(const std::string& name, const std::function<void()>& body) { return list_.check("model: " + name, body); }
  [[noreturn]] void refuse(const std::string& sentence) const { refuse_model(plain_.setup(), sentence); }

  // A model may have parts that these few samples do not ask for.
  void require_gradients() const {
    if (whole_.weight == 0) throw DoesNotApply{"no element of the samples counts"};
    const auto& names = whole_.without_gradient;
    if (names.empty()) return;
    const std::string which =
        names.front() + (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more" : "");
    if (names.size() == whole_.gradients.size()) refuse("the loss depends on none of the parameters: " + which);
    throw DoesNotApply{"with these samples the loss does not depend on " + which +
                       ": is it used, and is it the tensor that was registered? What is never trained is declared "
                       "frozen (frozen_until_step) or inert in attributes()"};
  }

  void require_same(const Trained& a, const Trained& b, double tolerance, const std::string& otherwise) const {
    if (std::abs(a.weight - b.weight) > std::max(tolerance, 1e-12) * std::abs(a.weight))
      refuse("the weight is " + short_number(a.weight) + " and " + short_number(b.weight) + ": " + otherwise);
    const double found = difference(a.gradients, b.gradients);
    if (!(found <= tolerance)) refuse("gradients differ by " + short_number(found) + " of the largest: " + otherwise);
  }

  void require_repeatable() {
    require_same(
        whole_, plain_.train(plain_.samples()), plain_.setup().device.is_cpu() ? 0.0 : rounded_tolerance,
        "a step is a function of weights, batch, keys, buffers and saved state alone; look for counters, clocks "
        "and generators of its own");
  }

  void require_keyed_draws() {
    if (has(HR_RNG_GENERATOR)) throw DoesNotApply{"it says that it draws from LibTorch's generator"};
    const auto state = [] { return at::detail::getDefaultCPUGenerator().get_state(); };
    const at::Tensor before = state();
    plain_.train(plain_.samples());
    if (!state().equal(before)) {
      refuse(
          "a step draws from LibTorch's generator, so a batch that is divided or repeated to save memory gives another "
          "result: draw by the SDK's dropout, normal and uniform, or declare HR_RNG_GENERATOR");
    }
  }

  void require_divisible() {
    if (has(HR_COUPLES_SAMPLES)) throw DoesNotApply{"it says that samples of a batch influence each other"};
    if (has(HR_RNG_GENERATOR)) throw DoesNotApply{"it draws from LibTorch's generator"};
    Trial& trial = exact_ ? *exact_ : plain_;
    if (trial.samples() < 2) throw DoesNotApply{"there is one sample only"};
    require_same(
        trial.train(trial.samples()), trial.train(1), exact_ ? exact_tolerance : rounded_tolerance,
        "loss_sum is a sum over elements and weight their number, never a mean; a model whose samples influence "
        "each other (BatchNorm) declares HR_COUPLES_SAMPLES");
  }

  bool same(const at::Tensor& a, const at::Tensor& b) const {
    const double tolerance = plain_.setup().device.is_cpu() ? 0.0 : rounded_tolerance;
    return at::allclose(a.to(at::kDouble), b.to(at::kDouble), tolerance, tolerance, /*equal_nan=*/true);
  }

  void require_pure_evaluation() {
    const auto buffers = plain_.buffers();
    const std::string state = plain_.model().save_state();
    const StepResult first = plain_.evaluate(0, plain_.samples()), second = plain_.evaluate(0, plain_.samples());
    const auto after = plain_.buffers();
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!same(buffers[i], after[i])) refuse("evaluation changes a buffer: only training does, by call.training()");
    }
    if (plain_.model().save_state() != state) refuse("evaluation changes what save_state() saves");
    const char* const drawn = "in evaluation a step draws nothing, so that it gives the same each time";
    if (!same(first.loss_sum, second.loss_sum))
      refuse(std::string("two evaluations of a batch differ in the loss: ") + drawn);
    for (size_t i = 0; i < first.outputs.size(); ++i) {
      if (!same(first.outputs[i], second.outputs[i]))
        refuse("two evaluations of a batch differ in '" + plain_.model().outputs()[i].name + "': " + drawn);
    }
  }

  void require_samples_apart() {
    if (has(HR_COUPLES_SAMPLES)) throw DoesNotApply{"it says that samples of a batch influence each other"};
    Trial& trial = exact_ ? *exact_ : plain_;
    if (trial.samples() < 2) throw DoesNotApply{"there is one sample only"};
    // The second sample: what leaks from the first one into others does not show in the first.
    const StepResult together = trial.evaluate(0, trial.samples()), alone = trial.evaluate(1, 1);
    for (size_t i = 0; i < together.outputs.size(); ++i) {
      const at::Tensor &all = together.outputs[i], &one = alone.outputs[i];
      const bool has_rows = all.dim() > 0 && all.size(0) == trial.samples() && one.dim() == all.dim();
      if (!has_rows || !all.is_floating_point()) continue;
      // NaN may stand for what does not count: compared as 0.
      const at::Tensor row = at::nan_to_num(all.narrow(0, 1, 1)), own = at::nan_to_num(one);
      const double found = difference(std::span(&row, 1), std::span(&own, 1));
      if (found <= (exact_ ? exact_tolerance : rounded_tolerance)) continue;
      refuse("'" + trial.model().outputs()[i].name + "' of a sample differs by " + short_number(found) +
             " with the samples beside it: in evaluation they are independent, or the model declares "
             "HR_COUPLES_SAMPLES");
    }
  }

  void require_recomputed(const std::string& kind) {
    Trial& trial = exact_ ? *exact_ : plain_;
    const Trained kept = trial.train(trial.samples());
    trial.model().recompute(std::vector{kind});
    std::exception_ptr problem;
    Trained again;
    try {
      again = trial.train(trial.samples());
    } catch (...) {
      problem = std::current_exception();
    }
    trial.model().recompute({});  // later checks keep all again
    if (problem) std::rethrow_exception(problem);
    require_same(kept, again, exact_ ? exact_tolerance : rounded_tolerance,
                 "what checkpoint() computes again in backward has to give the same values");
  }

  void require_narrow(const std::string& precision) {
    Trial narrow(request_, precision);
    const double loss = narrow.train(narrow.samples()).loss;
    if (std::abs(loss - whole_.loss) <= narrow_tolerance * std::abs(whole_.loss)) return;
    refuse("the loss is " + short_number(loss) + " and " + short_number(whole_.loss) +
           " in fp32: sum in float32, or do not declare this precision");
  }

  void require_state() const {
    if (!plain_.model().has_state()) throw DoesNotApply{"it keeps nothing"};
    const std::string saved = plain_.model().save_state();
    plain_.model().load_state(saved);
    if (plain_.model().save_state() != saved) refuse("load_state() of what save_state() saved gives another state");
  }

  // What is kept the first times may be a cache.
  void require_no_leak() {
    const auto held = [] {
      const LedgerReading ledger = read_ledger();
      return std::accumulate(ledger.live_bytes.begin(), ledger.live_bytes.end(), int64_t{0});
    };
    std::vector<int64_t> after;
    // The first four fill caches; the last four tell.
    for (int i = 0; i < 8; ++i) {
      plain_.train(plain_.samples());
      after.push_back(held());
    }
    const int64_t growth = (after[7] - after[3]) / 4;
    // Strictly: under this order two equal values are out of order.
    const bool grows_always = std::is_sorted(after.begin() + 3, after.end(), std::less_equal<>());
    if (growth > 0 && !grows_always) return;
    if (growth > 0)
      refuse("each step keeps " + std::to_string(growth) + " bytes more: look for tensors that are stored in members");
  }

  Request request_;
  CheckList list_;
  Trial plain_;
  std::optional<Trial> exact_;  // in fp64, where the model can
  Trained whole_;
};

}  // namespace

std::vector<CheckResult> check_model(const std::filesystem::path& experiment, const std::vector<Override>& overrides,
                                     const std::vector<std::filesystem::path>& plugin_dirs) {
  return ModelChecks({experiment, overrides, plugin_dirs}).run();
}

}  // namespace headroom
