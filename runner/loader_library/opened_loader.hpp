// The loader of an experiment's split, opened as a run opens it, and where it stands.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "data/loader.hpp"
#include "data/opened_data.hpp"
#include "loader_library/exported_batch.hpp"

namespace headroom {

struct LoaderRequest {
  std::filesystem::path experiment;  // empty: `keys` alone
  std::vector<Override> keys;
  std::string split = "train";
  std::optional<bool> training;  // nullopt: whether the split is "train"
  int64_t batch_size = 0;        // 0: the experiment's
  std::vector<std::filesystem::path> plugin_dirs;
};

// One thread at a time.
class OpenedLoader {
 public:
  // Error as prepare_data(), and Error(bad_input) where the data has no such split.
  explicit OpenedLoader(const LoaderRequest& request);

  // hr_loader_description().
  const std::string& description() const { return description_; }

  // The next batch begins there. Error(bad_input) where `position` is no multiple of the batch size, or beyond the
  // epoch.
  void seek(uint64_t epoch, uint64_t position);

  enum class Outcome { batch, epoch_end, waiting };
  // Fills `out` where it is a batch. `most`: how long it may wait for readers. After an exception the next call reads
  // the same batch again.
  Outcome next(std::chrono::milliseconds most, std::shared_ptr<const ExportedBatch>& out);

  uint64_t epoch() const { return epoch_; }
  uint64_t position() const { return position_; }
  uint64_t held() const { return held_->load(); }
  uint64_t skipped() const { return loader_.skipped_samples(); }

 private:
  const Split& split() const;
  Normalizer found_statistics();
  std::string order_digest() const;
  nlohmann::json describe() const;

  std::vector<std::string> notes_;
  const Experiment experiment_;
  const std::string split_name_;
  const bool training_;
  const OpenedData data_;
  const LoaderInput input_;
  const LoaderOptions options_;
  Loader loader_;
  const HeldCount held_ = std::make_shared<std::atomic<uint64_t>>(0);
  const std::string description_;
  uint64_t epoch_ = 0, position_ = 0;  // of the next batch
  bool is_there_ = false;              // so is loader_
};

}  // namespace headroom
