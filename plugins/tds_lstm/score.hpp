// What a prediction is worth: the loss as a sum and its weight, and the metrics as rows of (sum, weight). Nothing here
// waits for a device.
#pragma once

#include <string>
#include <vector>

#include "architecture.hpp"
#include "headroom/model.hpp"

namespace headroom {

// One window's worth of predictions and what they should have been.
struct Scored {
  at::Tensor prediction, target;  // [batch, n, joints]
  at::Tensor mask;                // bool [batch, n]: what counts
};

struct LossSum {
  at::Tensor loss_sum, weight;  // 0-dim; weight, in float64, is the number of angles that count
};

// Masked angles give exactly zero loss and gradient, also where the target is not a number.
LossSum loss_of(const Scored& scored, const LossWeights& weights);

// The metrics that suit this network: degrees where the angles are radians, fingers where they are the 20 of emg2pose.
std::vector<sdk::Metric> metric_list(const Architecture& architecture);

// In the order of metric_list().
std::vector<sdk::MetricSum> metrics_of(const Scored& scored, const Architecture& architecture);

}  // namespace headroom
