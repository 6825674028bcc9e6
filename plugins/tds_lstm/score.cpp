#include "score.hpp"

#include <algorithm>
#include <numbers>

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

}  // namespace

LossSum loss_of(const Scored& scored, const LossWeights& weights) {
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
