// What a run works with: its data (RunData) and the model that was built for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "metrics/metrics.hpp"
#include "plugins/torch_model.hpp"
#include "train/matmul.hpp"
#include "train/retry.hpp"
#include "train/run_data.hpp"
#include "train/shortage.hpp"

namespace headroom {

// Immutable, except that training changes the tensors of the model that it owns.
struct Setup {
  // Builds the model and moves it to the device; this is the first part of a run that needs much memory. The plugin
  // draws the weights from the seed. `init_id`: the weights that replace them, see start_id(). `data` must outlive it.
  // Sets how LibTorch multiplies matrices. Error(does_not_fit), Error(plugin), Error(bad_input). [control]
  explicit Setup(const RunData& data, std::string init_id = "");
  explicit Setup(RunData&& temporary, std::string init_id = "") = delete;

  const RunData& data;
  const at::Device device;
  const at::ScalarType dtype;  // of parameters, and of floating fields in a batch
  const std::string init_id;   // "": the weights are drawn from the seed
  const std::unique_ptr<Model> model;
  const std::vector<OutputPair> output_pairs;  // what the host measures besides the model's own metrics
  const MatmulChoice matmul;
  const int64_t built_bytes;  // what the process held once all this was there

  LoaderOptions loader_options(bool training) const;
  MicroBatch micro_batch() const;             // samples of one forward pass, and whether they may change
  MicroBatch evaluation_micro_batch() const;  // the same without backward: at most a batch of that loader
  std::string indivisible_because() const;    // why batches cannot be divided to save memory; "" where they can
  nlohmann::json mathematics() const;  // what changes the mathematics; differences.cpp names the keys of its entries
  std::string identity() const;        // its hash
  Advice advice() const;               // what would make it fit when it does not
  // Whether lower values of experiment.metric ("val/loss") are better. Error(bad_input) for a metric that nothing
  // measures.
  bool lower_wins(const std::string& metric) const;

  // The model's metrics, then the host's.
  std::vector<MetricInfo> metrics() const;
  OutputMetrics output_metrics() const;  // as metrics.mode keeps them
  // The batches of an epoch whose outputs are measured; none where there is nothing to measure. Evaluations always use
  // the sample of epoch 0, so that they compare.
  MetricSample metric_sample(const Loader& loader, bool training, int64_t epoch = 0) const;
};

}  // namespace headroom
