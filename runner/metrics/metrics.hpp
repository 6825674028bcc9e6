// metrics/: what is measured of a model's outputs, and what is shown of them. It knows no run: runner/train gives it
// outputs and asks for values. Start here: StepSums, what a run adds up step by step.
//
// pair_outputs() says which outputs are measured against each other (output_pairs.hpp). OutputMetrics adds them up
// (output_metrics.hpp): numbers as OutputMoments, class scores as a Confusion. All of it in constant memory: sums on
// the model's device, read back only when somebody looks. Examples keeps a few samples for a run's page (examples.hpp),
// picture.hpp makes pixels of a tensor. Other folders use these headers; what they are made of is for this one.
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
