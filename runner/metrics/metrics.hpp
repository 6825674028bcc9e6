// Metrics in constant memory: float64 sums and weights on the model's device, read back only when somebody looks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metrics/output_metrics.hpp"
#include "plugins/torch_model.hpp"

namespace headroom {

// Row 0 is the loss, row 1 + i is the model's metric i; columns are (sum, weight). Pooled over everything added. Beside
// them the host's metrics, of the results that carry outputs.
class StepSums {
 public:
  StepSums(size_t metrics, at::Device device, OutputMetrics outputs = {});
  void zero();
  void add(const StepResult& result);  // nothing synchronises; all or nothing
  // All or nothing; allocates nothing once both have been added to. Sums without the host's metrics leave those of
  // `other` out.
  void add(const StepSums& other);
  at::Tensor& tensor() { return rows_; }
  OutputMetrics& outputs() { return outputs_; }
  double loss_sum() const;  // synchronises, as the next two
  double weight() const;    // of the loss
  double loss() const;      // sum / weight; NaN when nothing counted
  // "<prefix>/loss", "<prefix>/<metric>" of the model and then of the host, for each that counted anything.
  Measured measured(const std::string& prefix, std::span<const MetricInfo> metrics) const;

 private:
  at::Tensor rows_;  // float64 [1 + metrics, 2]
  OutputMetrics outputs_;
};

}  // namespace headroom
