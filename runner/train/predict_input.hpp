// The samples of what a prediction is asked of, in order.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "data/loader.hpp"
#include "plugins/recording.hpp"
#include "train/setup.hpp"

namespace headroom {

// As a run's model sees them in evaluation: nothing drawn, standardised with the run's statistics. [control]
class PredictInput {
 public:
  virtual ~PredictInput() = default;
  virtual uint64_t samples() const = 0;
  // The batch that begins at sample `first`, a multiple of the batch size; nullopt behind the last. Valid until the
  // next one. Where memory ran out, it may be asked for again.
  virtual std::optional<Batch> read(uint64_t first) = 0;
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

}  // namespace headroom
