// From an Experiment to the objects a run works with: plugins loaded, options checked, data opened and divided, model
// built and placed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "config/experiment.hpp"
#include "data/data_report.hpp"
#include "data/kept_statistics.hpp"
#include "data/loader.hpp"
#include "data/order_choice.hpp"
#include "data/synth.hpp"
#include "plugins/torch_model.hpp"
#include "train/metric_sample.hpp"
#include "train/metrics.hpp"
#include "train/micro_batch.hpp"
#include "train/shortage.hpp"

namespace headroom {

struct Setup {
  const Experiment* experiment = nullptr;
  std::optional<Library> model_library, source_library;
  OptionTable model_table, data_table;
  OptionValues model_options, data_options;
  std::optional<SynthOptions> synth;
  std::shared_ptr<Session> session;  // before what is made with it
  std::shared_ptr<const Source> source;
  std::string content_id;
  std::string init_id;                           // what [init] starts from, see start_id(); empty: nothing
  std::vector<std::string> standardised_fields;  // that the source delivers so, see read_normalized_copies()
  Splits splits;
  StoredLayout stored;  // what the source opened
  OrderChoice order;    // of training
  std::unique_ptr<Model> model;
  std::vector<OutputPair> output_pairs;  // what the host measures beside the model's own metrics
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;  // of parameters, and of floating fields in a batch
  int threads = 1;

  MicroBatch micro_batch() const;      // samples of one forward pass, and whether they may change
  std::string why_whole() const;       // why batches cannot be divided to save memory; "" where they can
  int64_t window_samples() const;      // batch_size x gradient_accumulation_steps
  uint64_t samples_per_epoch() const;  // of the training split, less what drop_last drops
  int64_t windows_per_epoch() const;
  int64_t epochs() const;              // at most: train.epochs, or fewer where train.max_steps ends it before
  std::string resolved_toml() const;   // the experiment with every default filled in and every path absolute
  nlohmann::json mathematics() const;  // what changes the mathematics; differences.cpp names the keys of its entries
  std::string identity() const;        // its hash
  Advice advice() const;               // what would make it fit when it does not
  // Whether lower values of experiment.metric ("val/loss") are better. Error(bad_input) when nobody measures it.
  bool lower_wins(const std::string& metric) const;

  LoaderOptions loader_options(bool training) const;

  StatisticsRequest statistics_request() const;  // of the normalisation, as the experiment asks for it

  Normalizer left_to_apply(const Normalizer& normalizer) const;  // to what the source delivers

  CacheSetting cache_setting() const;    // what the sample cache is used for
  int64_t expected_cache_bytes() const;  // what it will hold, where memory allows

  // The model's metrics, then the host's.
  std::vector<MetricInfo> metrics() const;
  OutputMetrics output_metrics() const;  // as metrics.mode keeps them
  // The batches of an epoch whose outputs are asked for: none where there is nothing to measure. Evaluations take the
  // sample of epoch 0, so that they compare.
  MetricSample metric_sample(const Loader& loader, bool training, int64_t epoch = 0) const;
};

// All but the model: plugins loaded, options checked, data opened and divided. Writes [data.synth] data first where
// `path` does not exist. `experiment` must outlive the Setup.
Setup prepare_data(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs);

// data.normalized_cache: copies in which fields are standardised are found or made, and read from here on. `say`: lines
// for the log.
void read_normalized_copies(Setup& setup, const Normalizer& normalizer,
                            const std::function<void(const std::string& line)>& say);

// The model, built and placed: the first thing of a run that needs memory to speak of.
void build_model(Setup& setup);

// Both.
Setup prepare(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs);

}  // namespace headroom
