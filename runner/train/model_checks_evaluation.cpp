// What a model does in evaluation and in prediction.
#include <algorithm>

#include "metrics/metrics.hpp"
#include "record/numbers.hpp"
#include "train/model_checks.hpp"
#include "train/predict_pass.hpp"

namespace headroom {

namespace {

// Rows of (sum, weight) in float64: the loss, then each metric.
at::Tensor sums_of(const StepResult& result) {
  const at::Tensor loss = at::stack({result.loss_sum.to(at::kDouble), result.weight.to(at::kDouble)}).reshape({1, 2});
  return (result.metrics.defined() ? at::cat({loss, result.metrics.reshape({-1, 2})}) : loss).to(at::kCPU);
}

}  // namespace

void ModelChecks::require_pure_evaluation() {
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
void ModelChecks::require_sums() {
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
void ModelChecks::require_pairs() {
  const Model& model = plain_->model();
  const auto pairs = pair_outputs(model.id(), model.outputs(), model.metrics());
  if (pairs.empty()) throw DoesNotApply{"it declares no prediction with a target"};
  const StepResult result = plain_->evaluate(0, plain_->samples());
  for (const OutputPair& pair : pairs) tensors_of(pair, result.outputs);
}

void ModelChecks::require_samples_apart() {
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
void ModelChecks::require_second_row(const ModelTrial& trial, size_t i, const at::Tensor& all,
                                     const at::Tensor& one) const {
  // NaN may stand for what does not count: compared as 0.
  const at::Tensor row = at::nan_to_num(all.narrow(0, 1, 1)), own = at::nan_to_num(one);
  const double found = difference(std::span(&row, 1), std::span(&own, 1));
  if (found <= sharpest_tolerance()) return;
  refuse("'" + trial.model().outputs()[i].name + "' of a sample differs by " + short_number(found) +
         " with the samples beside it: in evaluation they are independent, or the model declares "
         "HR_COUPLES_SAMPLES");
}

std::vector<at::Tensor> ModelChecks::predicted(ModelTrial& trial, int64_t first, int64_t count, size_t target) const {
  try {
    return trial.predict(first, count, target);
  } catch (const Error& problem) {
    if (problem.exit_code() != Exit::bad_input) throw;
    refuse("predict() fails without the field '" + trial.model().fields()[target].name + "' (" + problem.what() +
           "): it computes from inputs alone, and what needs the target stays undefined");
  }
}

void ModelChecks::require_prediction() {
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

}  // namespace headroom
