// How predictions are made: the samples of a recording in order, and one pass of the model over them in micro-batches
// that fit into memory.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/loader.hpp"
#include "plugins/recording.hpp"
#include "train/micro_batches.hpp"
#include "train/setup.hpp"

namespace headroom {

// The rows of a recording that a field of one sample shows.
struct SamplePosition {
  uint32_t split = 0;
  uint64_t group = 0;  // of the split
  std::string name;    // of the group
  RecordedRows rows;
};

// Samples as a run's model sees them in evaluation: without augmentation, standardised with the run's statistics.
// [control]
class PredictInput {
 public:
  virtual ~PredictInput() = default;
  virtual uint64_t samples() const = 0;
  virtual uint64_t batch_size() const = 0;
  // The batch that begins at sample `first`, a multiple of the batch size; nullopt after the last one. Valid until the
  // next call. Where memory ran out, the same batch may be read again.
  virtual std::optional<Batch> read(uint64_t first) = 0;
  // nullopt: the source does not say, or the field shows no rows of a recording. REQUIRES sample < samples().
  virtual std::optional<SamplePosition> position(size_t, uint64_t) const { return std::nullopt; }
};

// A recording as samples; sample i begins at step starts[i].
std::unique_ptr<PredictInput> recorded_steps(const Setup& setup, std::unique_ptr<Recording> recording,
                                             const Normalizer& normalizer, std::vector<uint64_t> starts);
// The same; sample i begins at step i.
std::unique_ptr<PredictInput> recorded_steps(const Setup& setup, std::unique_ptr<Recording> recording,
                                             const Normalizer& normalizer);

// Opens the run's datasource with another `path` and returns all samples of its splits, one split after the other.
// Error(bad_input) where the source has no such option; Error(data) where its fields differ from the run's.
std::unique_ptr<PredictInput> samples_at(const Setup& setup, const std::filesystem::path& path,
                                         const Normalizer& normalizer);

using Outputs = std::vector<at::Tensor>;

struct PredictPass {
  std::function<Outputs(const MicroBatchTensors&)> ask;
  // Takes the outputs, on the CPU, of samples [first, first + count) of the batch. Called in order, once for each
  // sample.
  std::function<void(const Batch&, int64_t first, int64_t count, const Outputs&)> take;
};

// The index of the output that holds the prediction. REQUIRES that the model has one.
size_t prediction_output(const Model& model);

// Asks the model through headroom.predict/1 with every field but `target`, the one to predict.
std::function<Outputs(const MicroBatchTensors&)> asking_without(size_t target, const Setup& setup,
                                                                int64_t trained_steps);

// Runs the pass without gradients. Returns false where a signal stopped it.
bool run_pass(const Setup& setup, PredictInput& input, const PredictPass& pass);

}  // namespace headroom
