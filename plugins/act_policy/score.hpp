// What a prediction is worth: the loss as a sum over samples, and the metrics as rows of (sum, weight). Nothing here
// waits for a device.
#pragma once

#include <vector>

#include "architecture.hpp"
#include "headroom/model.hpp"
#include "policy.hpp"

namespace headroom {

// Both terms summed over the samples of the batch; every sample counts 1.
struct Loss {
  at::Tensor l1;  // a sample's mean over all actions of the chunk, padded ones (which add nothing) included
  at::Tensor kl;  // summed over the latent dimensions
};

// The error that counts: zero where an action is padding.
at::Tensor error_of(const Prediction& prediction, const Demonstration& shown);
Loss loss_of(const at::Tensor& error, const Prediction& prediction);

// l1, kl, and the mean absolute error of every joint over the actions that are not padding, in the joint's unit.
std::vector<sdk::Metric> metric_list(const Architecture& architecture);
std::vector<sdk::MetricSum> metrics_of(const at::Tensor& error, const Demonstration& shown, const Loss& loss,
                                       const Architecture& architecture);

}  // namespace headroom
