// metrics/: what is measured of a model's outputs, and what is shown of them. It knows no run: runner/train gives it
// outputs and asks for values. Start here: StepSums, what a run adds up step by step.
//
// pair_outputs() says which outputs are measured against each other (output_pairs.hpp). OutputMetrics adds them up:
// numbers as OutputMoments (output_moments.hpp), class scores as a Confusion (confusion.hpp). All of it in constant
// memory: sums on the model's device, read back only when somebody looks. Examples keeps a few samples for a run's page
// (examples.hpp), picture.hpp makes pixels of a tensor. Other folders use this header and those two.
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

// What a split was measured to be.
struct Measured {
  Scalars values;  // "val/r2" -> value
  // "val/r2" -> one value a channel, null where it has none; left out for a single channel and for more than
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
  // outputs: metrics.mode = "full", on the CPU, measured when asked; of class scores counts alone, which are exact.
  enum class Keep { sums, outputs };

  OutputMetrics() = default;  // measures nothing
  // `device`: the model's. The matrices of class scores are made here: they may be too large for a step to ask for.
  explicit OutputMetrics(std::vector<OutputPair> pairs, Keep keep = Keep::sums, at::Device device = at::kCPU);
  OutputMetrics(OutputMetrics&&) = default;
  OutputMetrics& operator=(OutputMetrics&&) = default;

  bool empty() const { return parts_.empty(); }
  void zero();
  // One micro-batch: all of the model's outputs, or none where they were not asked for. All or nothing. Error(plugin)
  // when shapes do not suit.
  void add(std::span<const at::Tensor> outputs);
  void add(const OutputMetrics& other);                // of the same pairs; all or nothing
  Measured measured(const std::string& prefix) const;  // synchronises; what counted nothing is left out

  // The sums under their predictions' names, for a checkpoint: moments only once something was added, and none of
  // outputs that are kept.
  std::vector<std::pair<std::string, at::Tensor>> state() const;
  // `stored` gives such a tensor on the model's device; undefined: there is none. Error(bad_input) when it is no such.
  void restore(const std::function<at::Tensor(const std::string& name)>& stored);

 private:
  struct Part {
    OutputPair pair;
    OutputMoments sums;
    std::vector<PairTensors> kept;  // in the order added
    Confusion confusion;            // in place of the two where the pair has classes
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

// The batches that the host measures: a uniform sample without replacement of `wanted` of `batches`, or all of them:
// a function of (seed, epoch) only. [any]
class MetricSample {
 public:
  MetricSample() : MetricSample(0, 0, 0, 0) {}  // nothing
  MetricSample(uint64_t batches, uint64_t wanted, uint64_t seed, uint64_t epoch);
  bool contains(uint64_t batch) const;  // counted from the epoch's beginning

 private:
  uint64_t wanted_;
  Order order_;
};

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
