// metrics/: what is measured of a model's outputs, and what is shown of them. It does not know runs: runner/train
// passes outputs in and asks for values. Start here: StepSums adds up what each step of a run gives.
//
// pair_outputs() chooses which outputs are compared with which (output_pairs.hpp). OutputMetrics adds them up: numbers
// as OutputMoments (output_moments.hpp), class scores as a Confusion (confusion.hpp). All of it takes constant memory:
// sums on the model's device, which are read back only when their values are asked for. Examples keeps a few samples
// for a run's page (examples.hpp); picture.hpp makes pixels of a tensor. Other folders include this header, examples.hpp
// and picture.hpp.
#pragma once

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/order.hpp"
#include "metrics/confusion.hpp"
#include "metrics/output_moments.hpp"
#include "metrics/output_pairs.hpp"
#include "plugins/torch_model.hpp"
#include "record/run_log.hpp"

namespace headroom {

// The values measured on a split.
struct Measured {
  Scalars values;  // "val/r2" -> value
  // "val/r2" -> one value for each channel, null where it has none. Left out for a single channel, and for more than
  // most_channels_listed.
  nlohmann::json channels = nlohmann::json::object();
  nlohmann::json classes = nlohmann::json::object();  // "val/<output>" -> class_metrics_json()

  void append(const Measured& more);
};
inline constexpr int64_t most_channels_listed = 256;

// The host's metrics: MSE, MAE, RMSE and R2 of a model's predictions against its targets, pooled over valid elements
// and per channel, or accuracy, F1 and the confusion matrix of class scores. R2 is per channel, then the mean; a
// channel whose target never changes has none.
class OutputMetrics {
 public:
  // `outputs`, for metrics.mode = "full", keeps the outputs themselves on the CPU and measures them when asked. Of
  // class scores only the counts are kept, which are exact.
  enum class Keep { sums, outputs };

  OutputMetrics() = default;  // measures nothing
  // `device`: the model's. The matrices of class scores are allocated here, because they may be too large to allocate
  // during a step.
  explicit OutputMetrics(std::vector<OutputPair> pairs, Keep keep = Keep::sums, at::Device device = at::kCPU);
  OutputMetrics(OutputMetrics&&) = default;
  OutputMetrics& operator=(OutputMetrics&&) = default;

  bool empty() const { return parts_.empty(); }
  void zero();
  // Adds one micro-batch: all of the model's outputs, or none where they were not asked for. Adds everything or
  // nothing. Error(plugin) when shapes do not match.
  void add(std::span<const at::Tensor> outputs);
  void add(const OutputMetrics& other);                // of the same pairs; everything or nothing
  Measured measured(const std::string& prefix) const;  // synchronises; leaves out what has no valid elements

  // The sums under the names of their predictions, for a checkpoint. Moments are included only once something was
  // added; outputs that are kept are not included.
  std::vector<std::pair<std::string, at::Tensor>> state() const;
  // Restores state(). `stored` returns the tensor of that name on the model's device; undefined: there is none.
  // Error(bad_input) where it does not match.
  void restore(const std::function<at::Tensor(const std::string& name)>& stored);

 private:
  struct Part {
    OutputPair pair;
    OutputMoments sums;
    std::vector<PairTensors> kept;  // in the order added
    Confusion confusion;            // instead of sums and kept where the pair has classes
    bool keeps(Keep keep) const { return keep == Keep::outputs && !pair.classes; }
    at::Tensor moments() const;         // on the CPU; undefined: nothing was added
    const at::Tensor& stored() const {  // of a checkpoint
      return pair.classes ? confusion.tensor() : sums.tensor();
    }
  };
  static void add_values(const Part& part, const std::string& prefix, Measured& measured);
  static void add_classes(const Part& part, const std::string& prefix, Measured& measured);

  std::vector<Part> parts_;
  Keep keep_ = Keep::sums;
};

// The batches that the host measures: all of `batches`, or a uniform sample of `wanted` of them without replacement. A
// function of (seed, epoch) only. [any]
class MetricSample {
 public:
  MetricSample() : MetricSample(0, 0, 0, 0) {}  // nothing
  MetricSample(uint64_t batches, uint64_t wanted, uint64_t seed, uint64_t epoch);
  bool contains(uint64_t batch) const;  // counted from the epoch's beginning

 private:
  uint64_t wanted_;
  Order order_;
};

// Sums over everything added: row 0 is the loss, row 1 + i the model's metric i; the columns are (sum, weight). With
// the host's metrics of those results that carry outputs.
class StepSums {
 public:
  StepSums(size_t metrics, at::Device device, OutputMetrics outputs = {});
  void zero();
  void add(const StepResult& result);  // does not synchronise; everything or nothing
  // Adds everything or nothing; allocates nothing once both have been added to. Ignores the host's metrics of `other`
  // where this has none.
  void add(const StepSums& other);
  at::Tensor& tensor() { return rows_; }
  OutputMetrics& outputs() { return outputs_; }
  double loss_sum() const;  // synchronises, as the next two
  double weight() const;    // of the loss
  double loss() const;      // sum / weight; NaN when the weight is 0
  // "<prefix>/loss" and "<prefix>/<metric>", of the model and then of the host, for each that has valid elements.
  Measured measured(const std::string& prefix, std::span<const MetricInfo> metrics) const;

 private:
  at::Tensor rows_;  // float64 [1 + metrics, 2]
  OutputMetrics outputs_;
};

}  // namespace headroom
