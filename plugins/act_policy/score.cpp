#include "score.hpp"

namespace headroom {

at::Tensor error_of(const Prediction& prediction, const Demonstration& shown) {
  return at::where(shown.valid.unsqueeze(2), prediction.actions - shown.actions, 0.0);
}

Loss loss_of(const at::Tensor& error, const Prediction& prediction) {
  const at::Tensor& mean = prediction.mean;
  const at::Tensor& logvar = prediction.logvar;
  return {error.abs().sum() / static_cast<double>(error.size(1) * error.size(2)),
          (1.0 + logvar - mean.square() - logvar.exp()).sum() * -0.5};
}

std::vector<sdk::Metric> metric_list(const Architecture& architecture) {
  std::vector<sdk::Metric> metrics = {{"l1"}, {"kl"}};
  for (const Joint& joint : architecture.joints) metrics.push_back({"error_" + joint.name, joint.unit});
  return metrics;
}

std::vector<sdk::MetricSum> metrics_of(const at::Tensor& error, const Demonstration& shown, const Loss& loss,
                                       const Architecture& architecture) {
  const torch::NoGradGuard no_grad;
  const auto samples = static_cast<double>(error.size(0));
  const at::Tensor by_joint = error.detach().abs().sum({0, 1}, /*keepdim=*/false, torch::kFloat64);
  const at::Tensor counted = shown.valid.sum().to(torch::kFloat64);
  std::vector<sdk::MetricSum> rows = {{loss.l1.detach(), samples}, {loss.kl.detach(), samples}};
  for (int64_t i = 0; i < by_joint.size(0); ++i)
    rows.push_back({by_joint[i] * architecture.joints[static_cast<std::size_t>(i)].std, counted});
  return rows;
}

}  // namespace headroom
