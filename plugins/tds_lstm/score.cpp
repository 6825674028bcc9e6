#include "score.hpp"

#include <ATen/Parallel.h>
#include <algorithm>
#include <numbers>

#include "row_kernels.hpp"

namespace headroom {
namespace {

constexpr int64_t kHandJoints = 20, kFingers = 5, kJointsPerFinger = 4;

bool is_hand(const Architecture& architecture) { return architecture.joints == kHandJoints; }
bool in_radians(const Architecture& architecture) { return architecture.unit == "rad"; }

// The sum over what the mask [batch, n] keeps of values [batch, n, joints], in float64.
at::Tensor masked_sum(const at::Tensor& values, const at::Tensor& mask) {
  return torch::where(mask.unsqueeze(2), values, 0.0).sum(torch::kFloat64);
}

using Rows = std::vector<sdk::MetricSum>;

// mean |difference| of first, second and third order times the sample rate (once, as the reference has it). A
// difference counts where all samples it is made of do.
void add_motion(Rows& rows, at::Tensor values, at::Tensor mask, double sample_rate_hz, int orders) {
  for (int order = 0; order < orders; ++order) {
    const int64_t samples = std::max<int64_t>(values.size(1) - 1, 0), first = std::min<int64_t>(values.size(1), 1);
    values = values.narrow(1, first, samples) - values.narrow(1, 0, samples);
    mask = mask.narrow(1, first, samples).logical_and(mask.narrow(1, 0, samples));
    rows.push_back({masked_sum(values.abs(), mask) * sample_rate_hz, mask.sum().to(torch::kFloat64) * values.size(2)});
  }
}

// `errors` [joints] and `weight` are of one joint. Joints go finger by finger, each from the palm outwards.
void add_hand(Rows& rows, const at::Tensor& errors, const at::Tensor& weight) {
  const at::Tensor hand = errors.view({kFingers, kJointsPerFinger});
  for (const at::Tensor& finger : hand.sum(1).unbind()) rows.push_back({finger, weight * kJointsPerFinger});
  rows.push_back({hand.narrow(1, 0, 2).sum(), weight * (2 * kFingers)});
  rows.push_back({hand.select(1, 2).sum(), weight * kFingers});
  rows.push_back({hand.select(1, 3).sum(), weight * kFingers});
}

// Whether the kernels of row_kernels.hpp compute with these.
bool has_row_kernels(const Scored& scored) {
  const auto whole_rows = [](const at::Tensor& x) { return x.stride(2) == 1 && x.stride(1) == x.size(2); };
  return scored.prediction.is_cpu() && scored.prediction.scalar_type() == at::kFloat &&
         scored.target.scalar_type() == at::kFloat && whole_rows(scored.prediction) && whole_rows(scored.target) &&
         scored.mask.stride(1) == 1;
}

Compared window(const Scored& scored, int64_t b) {
  return {scored.prediction.size(1), scored.prediction.size(2),
          scored.prediction.const_data_ptr<float>() + b * scored.prediction.stride(0),
          scored.target.const_data_ptr<float>() + b * scored.target.stride(0),
          scored.mask.const_data_ptr<bool>() + b * scored.mask.stride(0)};
}

// One pass over what would be a tensor for every step of the formula.
struct MaskedLoss : torch::autograd::Function<MaskedLoss> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& prediction,
                            const at::Tensor& target, const at::Tensor& mask, const LossWeights& weights) {
    const Scored scored{prediction, target, mask};
    std::vector<LossSums> sums(static_cast<std::size_t>(prediction.size(0)));
    at::parallel_for(0, prediction.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) sums[static_cast<std::size_t>(b)] = compare_rows(window(scored, b));
    });
    double loss = 0.0;
    for (const LossSums& one : sums) loss += weights.mae * one.absolute + weights.mse * one.square;
    context->save_for_backward({prediction, target, mask});
    context->saved_data["mae"] = weights.mae;
    context->saved_data["mse"] = weights.mse;
    return at::scalar_tensor(loss, prediction.options());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Scored scored{saved[0], saved[1], saved[2]};
    const double above = gradients[0].item<double>();
    const auto absolute = static_cast<float>(above * context->saved_data["mae"].toDouble()),
               square = static_cast<float>(above * context->saved_data["mse"].toDouble());
    const at::Tensor& prediction = scored.prediction;
    at::Tensor to_prediction = at::empty(prediction.sizes(), prediction.options());
    float* const to = to_prediction.mutable_data_ptr<float>();
    at::parallel_for(0, prediction.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        loss_gradient(window(scored, b), absolute, square, to + b * to_prediction.stride(0));
    });
    return {to_prediction, {}, {}, {}};
  }
};

MetricSums sums_of(const Scored& scored) {
  MetricSums sums;
  sums.by_joint.resize(static_cast<std::size_t>(scored.prediction.size(2)));
  for (int64_t b = 0; b < scored.prediction.size(0); ++b) add_metrics(window(scored, b), sums);
  return sums;
}

Rows rows_of(const MetricSums& sums, const Architecture& architecture) {
  const auto number = [](double value) { return at::scalar_tensor(value, at::kDouble); };
  const auto joints = static_cast<double>(architecture.joints), rate = architecture.sample_rate_hz;
  const at::Tensor by_joint = at::tensor(sums.by_joint, at::kDouble), count = number(static_cast<double>(sums.rows)),
                   all = count * joints, absolute = by_joint.sum();
  Rows rows = {{absolute, all}};
  if (in_radians(architecture)) rows.push_back({absolute * (180.0 / std::numbers::pi), all});
  rows.push_back({number(sums.square), all});
  for (const MotionSum& motion : sums.prediction)
    rows.push_back({number(motion.sum * rate), number(static_cast<double>(motion.rows) * joints)});
  rows.push_back({number(sums.error.sum * rate), number(static_cast<double>(sums.error.rows) * joints)});
  if (is_hand(architecture)) add_hand(rows, by_joint, count);
  return rows;
}

}  // namespace

LossSum loss_of(const Scored& scored, const LossWeights& weights) {
  if (has_row_kernels(scored)) {
    return {MaskedLoss::apply(scored.prediction, scored.target, scored.mask, weights),
            scored.mask.sum().to(torch::kFloat64) * scored.prediction.size(2)};
  }
  const at::Tensor error = torch::where(scored.mask.unsqueeze(2), scored.prediction - scored.target, 0.0);
  at::Tensor sum;
  if (weights.mae > 0.0) sum = error.abs().sum() * weights.mae;
  if (weights.mse > 0.0) {
    const at::Tensor squares = error.square().sum() * weights.mse;
    sum = sum.defined() ? sum + squares : squares;
  }
  return {sum, scored.mask.sum().to(torch::kFloat64) * scored.prediction.size(2)};
}

std::vector<sdk::Metric> metric_list(const Architecture& architecture) {
  const std::string& unit = architecture.unit;
  const std::string per_second = unit.empty() ? "1/s" : unit + "/s";
  std::vector<sdk::Metric> metrics = {{"mae", unit}};
  if (in_radians(architecture)) metrics.push_back({"mae_deg", "deg"});
  metrics.push_back({"rmse", unit, HR_ROOT_MEAN});
  metrics.push_back({"vel", per_second});
  metrics.push_back({"acc", per_second + "/sample"});
  metrics.push_back({"jerk", per_second + "/sample^2"});
  metrics.push_back({"vel_error", per_second});
  if (is_hand(architecture)) {
    for (const char* name : {"thumb", "index", "middle", "ring", "pinky", "proximal", "mid", "distal"}) {
      metrics.push_back({std::string("mae_") + name, unit});
    }
  }
  return metrics;
}

std::vector<sdk::MetricSum> metrics_of(const Scored& scored, const Architecture& architecture) {
  const torch::NoGradGuard no_grad;
  if (has_row_kernels(scored)) return rows_of(sums_of(scored), architecture);
  const at::Tensor prediction = scored.prediction.detach();
  const at::Tensor error = torch::where(scored.mask.unsqueeze(2), prediction - scored.target, 0.0);
  const at::Tensor by_joint = error.abs().sum({0, 1}, /*keepdim=*/false, torch::kFloat64);
  const at::Tensor count = scored.mask.sum().to(torch::kFloat64), all = count * architecture.joints;

  Rows rows;
  rows.push_back({by_joint.sum(), all});
  if (in_radians(architecture)) rows.push_back({by_joint.sum() * (180.0 / std::numbers::pi), all});
  rows.push_back({error.square().sum(torch::kFloat64), all});
  add_motion(rows, prediction, scored.mask, architecture.sample_rate_hz, 3);
  add_motion(rows, error, scored.mask, architecture.sample_rate_hz, 1);
  if (is_hand(architecture)) add_hand(rows, by_joint, count);
  return rows;
}

}  // namespace headroom
