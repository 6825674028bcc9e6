#include <ATen/CPUGeneratorImpl.h>
#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>

#include "config/document.hpp"
#include "memory/ledger.hpp"
#include "metrics/output_pairs.hpp"
#include "plugins/option_checks.hpp"
#include "plugins/read_checks.hpp"
#include "record/numbers.hpp"
#include "train/commands.hpp"
#include "train/model_trial.hpp"
#include "train/predict_pass.hpp"
#include "train/run_data.hpp"

namespace headroom {

namespace {

// Parts of the largest value: in float64; in float32, where sums in another order round otherwise; and of a loss in
// bfloat16 or float16.
constexpr double exact_tolerance = 1e-9, rounded_tolerance = 1e-3, narrow_tolerance = 0.25;
// Allocators and libraries take less than this in a step that needs nothing new.
#ifdef __SANITIZE_ADDRESS__  // which keeps what was freed for a while
constexpr int64_t least_leak_bytes = int64_t{64} << 20;
#else
constexpr int64_t least_leak_bytes = 256 << 10;
#endif

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

// Rows of (sum, weight) in float64: the loss, then each metric.
at::Tensor sums_of(const StepResult& result) {
  const at::Tensor loss = at::stack({result.loss_sum.to(at::kDouble), result.weight.to(at::kDouble)}).reshape({1, 2});
  return (result.metrics.defined() ? at::cat({loss, result.metrics.reshape({-1, 2})}) : loss).to(at::kCPU);
}

std::string not_stepped(const std::string& why) { return "not stepped: " + why + "; give --with EXPERIMENT"; }

using MakeTrial = std::function<std::unique_ptr<ModelTrial>(const std::string& precision)>;

class ModelChecks {
 public:
  // `make` may throw DoesNotApply.
  ModelChecks(MakeTrial make, bool is_made_up) : make_(std::move(make)), is_made_up_(is_made_up) {
    // An experiment that cannot begin is an error of the command and not a line of the table.
    if (!is_made_up_) build();
  }

  std::vector<CheckResult> run() {
    // The others compare with what this one gives, or step as it does.
    check("a step gives loss, weight, outputs and metrics", [&] { step_first(); });
    if (!whole_) return list_.take();
    check("one seed gives the same first weights", [&] { require_seeded(); });
    check("a gradient reaches every parameter", [&] { require_gradients(); });
    check("the same step twice gives the same", [&] { require_repeatable(); });
    check("it draws from sample keys alone, or says so", [&] { require_keyed_draws(); });
    check("whole or in pieces, the gradient is the same", [&] { require_divisible(); });
    check("evaluation draws nothing and leaves nothing behind", [&] { require_pure_evaluation(); });
    check("evaluated whole or in pieces, loss and metrics are the same", [&] { require_sums(); });
    check("predictions have the shapes of their targets", [&] { require_pairs(); });
    check("evaluated alone or among others, a sample is the same", [&] { require_samples_apart(); });
    if (plain_->model().predictor() != nullptr) check("predicts from inputs alone", [&] { require_prediction(); });
    for (const std::string& kind : plain_->model().recompute_kinds())
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
  bool has(uint32_t capability) const { return (plain_->model().capabilities() & capability) != 0; }
  void check(const std::string& name, const std::function<void()>& body) {
    list_.check("model: " + name, [&] {
      try {
        body();
      } catch (const Error& problem) {
        // What a plugin breaks is its own mistake. That it wants other samples is no mistake where they are made up.
        if (!is_made_up_ || problem.exit_code() == Exit::plugin) throw;
        throw DoesNotApply{not_stepped(problem.what())};
      }
    });
  }
  [[noreturn]] void refuse(const std::string& sentence) const {
    throw Error(Exit::plugin, plain_->model().id(), sentence);
  }

  void build() {
    plain_ = make_("fp32");
    if (has(HR_MODEL_FP64)) exact_ = make_("fp64");
  }
  // The one that compares best.
  ModelTrial& sharpest() { return exact_ ? *exact_ : *plain_; }

  void step_first() {
    if (!plain_) build();
    whole_ = plain_->train(plain_->samples());
  }

  // exact_ has not been stepped yet, and a model that changes its weights in a step is told by other checks.
  void require_seeded() {
    const auto again = make_("fp32");
    const std::vector<Parameter>&first = sharpest().model().parameters(), &second = again->model().parameters();
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[i].kind != HR_PARAMETER || same(*first[i].tensor, *second[i].tensor)) continue;
      refuse(
          "two models of one seed begin with different values of '" + first[i].name +
          "', so no run could be repeated: draw them from LibTorch's generator, which is seeded for the constructor, "
          "or from its seed; not from clocks, std::random_device or the address of something");
    }
  }

  // A model may have parts that these few samples do not ask for.
  void require_gradients() const {
    if (whole_->weight == 0 && whole_->loss_sum == 0) throw DoesNotApply{"no element of the samples counts"};
    if (whole_->weight == 0) {
      refuse(
          "loss_sum is " + short_number(whole_->loss_sum) +
          " and the weight 0, so nothing would be trained: it is the number of elements that loss_sum is summed over");
    }
    if (!std::isfinite(whole_->loss_sum)) {
      refuse(std::string("the loss of these samples is ") + (std::isnan(whole_->loss_sum) ? "NaN" : "infinite") +
             ", which is not a number to train by: look for logarithms, roots and divisions of what may be 0 or less" +
             (is_made_up_ ? "; inputs() tells by min and max which values a field has" : ""));
    }
    if (!whole_->why_untrained.empty()) refuse(whole_->why_untrained);
    const auto& names = whole_->without_gradient;
    if (names.empty()) return;
    const std::string which =
        names.front() + (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more" : "");
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
        *whole_, plain_->train(plain_->samples()), plain_->device().is_cpu() ? 0.0 : rounded_tolerance,
        "a step is a function of weights, batch, keys, buffers and saved state alone; look for counters, clocks "
        "and generators of its own, and for weights that it changes");
  }

  void require_keyed_draws() {
    if (has(HR_RNG_GENERATOR)) throw DoesNotApply{"it says that it draws from LibTorch's generator"};
    const auto state = [] { return at::detail::getDefaultCPUGenerator().get_state(); };
    const at::Tensor before = state();
    plain_->train(plain_->samples());
    if (!state().equal(before)) {
      refuse(
          "a step draws from LibTorch's generator, so a batch that is divided or repeated to save memory gives another "
          "result: draw by the SDK's dropout, normal and uniform, or declare HR_RNG_GENERATOR");
    }
  }

  void require_divisible() {
    if (has(HR_COUPLES_SAMPLES)) throw DoesNotApply{"it says that samples of a batch influence each other"};
    if (has(HR_RNG_GENERATOR)) throw DoesNotApply{"it draws from LibTorch's generator"};
    ModelTrial& trial = sharpest();
    if (trial.samples() < 2) throw DoesNotApply{"there is one sample only"};
    require_same(
        trial.train(trial.samples()), one_by_one(trial), exact_ ? exact_tolerance : rounded_tolerance,
        "loss_sum is a sum over elements and weight their number, never a mean; a model whose samples influence "
        "each other (BatchNorm) declares HR_COUPLES_SAMPLES");
  }

  Trained one_by_one(ModelTrial& trial) const {
    try {
      return trial.train(1);
    } catch (const Error& problem) {
      if (problem.exit_code() != Exit::plugin) throw;
      refuse(
          std::string("a sample alone cannot be stepped: ") + problem.what() +
          "; a step takes any number of samples and any dtype of train.precision that the model declares, and a model "
          "whose samples influence each other (BatchNorm) declares HR_COUPLES_SAMPLES");
    }
  }

  bool same(const at::Tensor& a, const at::Tensor& b) const {
    const double tolerance = plain_->device().is_cpu() ? 0.0 : rounded_tolerance;
    return at::allclose(a.to(at::kDouble), b.to(at::kDouble), tolerance, tolerance, /*equal_nan=*/true);
  }

  void require_pure_evaluation() {
    const auto buffers = plain_->buffers();
    const std::string state = plain_->model().save_state();
    const StepResult first = plain_->evaluate(0, plain_->samples()), second = plain_->evaluate(0, plain_->samples());
    const auto after = plain_->buffers();
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!same(buffers[i], after[i])) refuse("evaluation changes a buffer: only training does, by call.training()");
    }
    if (plain_->model().save_state() != state) refuse("evaluation changes what save_state() saves");
    const char* const drawn = "in evaluation a step draws nothing, so that it gives the same each time";
    if (!same(first.loss_sum, second.loss_sum))
      refuse(std::string("two evaluations of a batch differ in the loss: ") + drawn);
    for (size_t i = 0; i < first.outputs.size(); ++i) {
      if (!same(first.outputs[i], second.outputs[i]))
        refuse("two evaluations of a batch differ in '" + plain_->model().outputs()[i].name + "': " + drawn);
    }
  }

  // Batches differ in size, so only sums can be pooled.
  void require_sums() {
    if (has(HR_COUPLES_SAMPLES)) throw DoesNotApply{"it says that samples of a batch influence each other"};
    ModelTrial& trial = sharpest();
    if (trial.samples() < 2) throw DoesNotApply{"there is one sample only"};
    const at::Tensor whole = sums_of(trial.evaluate(0, trial.samples()));
    at::Tensor pieces = at::zeros_like(whole), sizes = at::zeros_like(whole);
    for (int64_t i = 0; i < trial.samples(); ++i) {
      const at::Tensor piece = sums_of(trial.evaluate(i, 1));
      pieces += piece;
      sizes += piece.abs();
    }
    for (int64_t row = 0; row < whole.size(0); ++row) {
      if (at::all((whole[row] - pieces[row]).abs() <= sizes[row] * rounded_tolerance).item<bool>()) continue;
      const auto numbers = [&](const at::Tensor& sums) {
        return short_number(sums[row][0].item<double>()) + " over " + short_number(sums[row][1].item<double>());
      };
      const std::string name =
          row == 0 ? "the loss" : "'" + trial.model().metrics()[static_cast<size_t>(row - 1)].name + "'";
      refuse(name + " of the samples together is " + numbers(whole) + ", and one by one they add up to " +
             numbers(pieces) + ": it is a sum and its weight, the number of what was measured, never a mean, nor NaN");
    }
  }

  // As a run measures them.
  void require_pairs() {
    const Model& model = plain_->model();
    const auto pairs = pair_outputs(model.id(), model.outputs(), model.metrics());
    if (pairs.empty()) throw DoesNotApply{"it declares no prediction with a target"};
    const StepResult result = plain_->evaluate(0, plain_->samples());
    for (const OutputPair& pair : pairs) tensors_of(pair, result.outputs);
  }

  void require_samples_apart() {
    if (has(HR_COUPLES_SAMPLES)) throw DoesNotApply{"it says that samples of a batch influence each other"};
    ModelTrial& trial = sharpest();
    if (trial.samples() < 2) throw DoesNotApply{"there is one sample only"};
    // The second sample: what leaks from the first one into others does not show in the first.
    const StepResult together = trial.evaluate(0, trial.samples()), alone = trial.evaluate(1, 1);
    for (size_t i = 0; i < together.outputs.size(); ++i) {
      const at::Tensor &all = together.outputs[i], &one = alone.outputs[i];
      const bool has_rows = all.dim() > 0 && all.size(0) == trial.samples() && one.dim() == all.dim();
      if (has_rows && all.is_floating_point()) require_second_row(trial, i, all, one);
    }
  }

  // `all` and `one` are output `i` of all samples and of the second one.
  void require_second_row(const ModelTrial& trial, size_t i, const at::Tensor& all, const at::Tensor& one) const {
    // NaN may stand for what does not count: compared as 0.
    const at::Tensor row = at::nan_to_num(all.narrow(0, 1, 1)), own = at::nan_to_num(one);
    const double found = difference(std::span(&row, 1), std::span(&own, 1));
    if (found <= (exact_ ? exact_tolerance : rounded_tolerance)) return;
    refuse("'" + trial.model().outputs()[i].name + "' of a sample differs by " + short_number(found) +
           " with the samples beside it: in evaluation they are independent, or the model declares "
           "HR_COUPLES_SAMPLES");
  }

  std::vector<at::Tensor> predicted(ModelTrial& trial, int64_t first, int64_t count, size_t target) const {
    try {
      return trial.predict(first, count, target);
    } catch (const Error& problem) {
      if (problem.exit_code() != Exit::bad_input) throw;
      refuse("predict() fails without the field '" + trial.model().fields()[target].name + "' (" + problem.what() +
             "): it computes from inputs alone, and what needs the target stays undefined");
    }
  }

  void require_prediction() {
    ModelTrial& trial = sharpest();
    const Model& model = trial.model();
    const std::string name = model.predictor()->target_field;
    const auto target = std::ranges::find(model.fields(), name, &Field::name);
    if (target == model.fields().end()) throw DoesNotApply{"there is no field '" + name + "' to predict"};
    const auto place = static_cast<size_t>(target - model.fields().begin());
    // Model::predict() has seen that there is one.
    const auto together = predicted(trial, 0, trial.samples(), place);
    const size_t output = prediction_output(model);
    const at::Tensor& all = together[output];
    if (all.dim() == 3 && target->shape.size() == 2 && all.size(2) != target->shape[1]) {
      refuse("its prediction has " + std::to_string(all.size(2)) + " channels, the field '" + name + "' has " +
             std::to_string(target->shape[1]));
    }
    if (has(HR_COUPLES_SAMPLES) || trial.samples() < 2) return;
    const auto alone = predicted(trial, 1, 1, place);
    if (alone[output].sizes().slice(1) != all.sizes().slice(1))
      refuse("'" + model.outputs()[output].name + "' of a prediction has another shape for one sample alone");
    require_second_row(trial, output, all, alone[output]);
  }

  void require_recomputed(const std::string& kind) {
    ModelTrial& trial = sharpest();
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
    const auto narrow = make_(precision);
    const double loss = narrow->train(narrow->samples()).loss;
    if (std::abs(loss - whole_->loss) <= narrow_tolerance * std::abs(whole_->loss)) return;
    refuse("the loss is " + short_number(loss) + " and " + short_number(whole_->loss) +
           " in fp32: sum in float32, or do not declare this precision");
  }

  void require_state() const {
    if (!plain_->model().has_state()) throw DoesNotApply{"it keeps nothing"};
    const std::string saved = plain_->model().save_state();
    plain_->model().load_state(saved);
    if (plain_->model().save_state() != saved) refuse("load_state() of what save_state() saved gives another state");
  }

  // What is kept the first times may be a cache.
  void require_no_leak() {
    std::vector<int64_t> tensors, others;
    for (int i = 0; i < 8; ++i) {
      plain_->train(plain_->samples());
      const LedgerReading ledger = read_ledger();
      tensors.push_back(std::accumulate(ledger.live_bytes.begin(), ledger.live_bytes.end(), int64_t{0}));
      others.push_back(ledger.other_bytes);
    }
    if (const int64_t growth = growth_of_each_step(tensors, 1); growth > 0)
      refuse("each step keeps " + std::to_string(growth) + " bytes more: look for tensors that are stored in members");
    if (const int64_t growth = growth_of_each_step(others, least_leak_bytes); growth > 0) {
      refuse("each step keeps " + std::to_string(growth) +
             " bytes more that are in no tensor: look for containers that grow, and for what is not given back to a "
             "library");
    }
  }

  // Of the last four of eight steps, 0 where one of them added less than `least`: the first four fill caches.
  static int64_t growth_of_each_step(const std::vector<int64_t>& after, int64_t least) {
    for (size_t i = 4; i < after.size(); ++i) {
      if (after[i] - after[i - 1] < least) return 0;
    }
    return (after[7] - after[3]) / 4;
  }

  MakeTrial make_;
  bool is_made_up_;
  CheckList list_;
  std::unique_ptr<ModelTrial> plain_, exact_;  // exact_: in fp64, where the model can
  std::optional<Trained> whole_;
};

// The values of --set, which are about the model alone; an allowed value for what it requires beside them.
OptionValues options_for(const Library& library, const std::vector<Override>& overrides) {
  const auto refuse = [](const std::string& key) {
    throw Error(Exit::bad_input, "cli",
                "--set " + key + ": without an experiment there are the keys of model.options only; give it by --with");
  };
  for (const Override& one : overrides) {
    if (one.key != "model.options" && !one.key.starts_with("model.options.")) refuse(one.key);
  }
  toml::table document = read_overrides(overrides), set;
  if (auto options = document["model"]["options"]) {
    if (!options.is_table()) refuse("model.options");
    set = std::move(*options.as_table());
  }
  return trial_values(to_option_table(library.model_torch()->options, library.id()), std::move(set), "model.options",
                      "model plugin '" + library.id() + "'");
}

}  // namespace

std::vector<CheckResult> check_model(const std::filesystem::path& experiment, const std::vector<Override>& overrides,
                                     const std::vector<std::filesystem::path>& plugin_dirs) {
  CheckList reads;
  {
    // A source that needs data could not be opened without the experiment.
    const Experiment loaded = load_experiment(experiment, overrides);
    const RunData data = prepare_data(loaded, plugin_dirs);
    check_reads(reads, [&]() -> const Source& { return *data.source; });
  }
  std::vector<CheckResult> results = reads.take();
  const ExperimentRequest request{experiment, overrides, plugin_dirs};
  const auto make = [&](const std::string& precision) { return trial_of_experiment(request, precision); };
  std::ranges::move(ModelChecks(make, /*is_made_up=*/false).run(), std::back_inserter(results));
  return results;
}

std::vector<CheckResult> check_model_alone(const Library& library, const std::vector<Override>& overrides) {
  const OptionValues options = options_for(library, overrides);
  const auto make = [&](const std::string& precision) {
    if (library.inputs() == nullptr)
      throw DoesNotApply{not_stepped("it does not say by inputs() which fields it takes")};
    return made_up_trial(library, options, precision);
  };
  return ModelChecks(make, /*is_made_up=*/true).run();
}

}  // namespace headroom
