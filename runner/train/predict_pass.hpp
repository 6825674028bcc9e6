// How a prediction asks its model: the samples of a recording in order, and one pass of the model over them,
// micro-batch by micro-batch as memory allows.
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

// Where a field of a sample lies in the recording that its group is of.
struct SamplePosition {
  uint32_t split = 0;
  uint64_t group = 0;  // of the split
  std::string name;    // of the group
  RecordedRows rows;
};

// As a run's model sees them in evaluation: nothing drawn, standardised with the run's statistics. [control]
class PredictInput {
 public:
  virtual ~PredictInput() = default;
  virtual uint64_t samples() const = 0;
  // The batch that begins at sample `first`, a multiple of the batch size; nullopt behind the last. Valid until the
  // next one. Where memory ran out, it may be asked for again.
  virtual std::optional<Batch> read(uint64_t first) = 0;
  // nullopt: nobody says where samples lie, or the field shows no rows. REQUIRES sample < samples().
  virtual std::optional<SamplePosition> position(size_t, uint64_t) const { return std::nullopt; }
};

// Sample i begins at step starts[i] of the recording.
std::unique_ptr<PredictInput> recorded_steps(const Setup& setup, std::unique_ptr<Recording> recording,
                                             const Normalizer& normalizer, std::vector<uint64_t> starts);
// At step i.
std::unique_ptr<PredictInput> recorded_steps(const Setup& setup, std::unique_ptr<Recording> recording,
                                             const Normalizer& normalizer);

// The run's datasource opened with another `path`: all samples of its splits, one split after the other. Error where it
// has no such option (bad_input) or its fields differ from the run's (data).
std::unique_ptr<PredictInput> samples_at(const Setup& setup, const std::filesystem::path& path,
                                         const Normalizer& normalizer);

using Outputs = std::vector<at::Tensor>;

struct PredictPass {
  std::function<Outputs(const MicroBatchTensors&)> ask;
  // The answer, on the CPU, of samples [first, first + count) of the batch. In order; once each.
  std::function<void(const Batch&, int64_t first, int64_t count, const Outputs&)> take;
};

// The output that holds what the model predicts; REQUIRES that it has one.
size_t prediction_output(const Model& model);

// Asks through headroom.predict/1 and shows every field but `target`, which is to be predicted.
std::function<Outputs(const MicroBatchTensors&)> asking_without(size_t target, const Setup& setup,
                                                                int64_t trained_steps);

// Without gradients. false: stopped by a signal.
bool run_pass(const Setup& setup, PredictInput& input, const PredictPass& pass);

}  // namespace headroom
