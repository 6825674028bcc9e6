// What a model made of recordings that it was asked about window by window: one line a recording, put together of all
// windows that reach a row, beside what was recorded and what holding the last value makes of it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "report/decimated.hpp"
#include "report/prediction.hpp"

namespace headroom {

// A value a channel each, in the units that were measured.
struct LineRow {
  std::vector<double> predicted, held, recorded;
  std::vector<uint8_t> valid;  // 0: what was recorded does not count; nor does what is no number
};

// Takes rows in order, and keeps of them what errors and charts need: the same memory for a recording of any length.
class PredictedLines {
 public:
  PredictedLines(PredictionOrigin origin, std::string field, std::vector<sdk::Channel> channels);
  void begin(const std::string& name);  // the next recording
  void add(int64_t row, const LineRow& values);

  // Mean absolute errors of each channel over all recordings, in its unit; NaN where nothing counts.
  std::vector<double> predicted_errors() const { return means_of(predicted_sums_); }
  std::vector<double> held_errors() const { return means_of(held_sums_); }
  const std::vector<sdk::Channel>& channels() const { return channels_; }

  std::string table() const;    // for terminals
  nlohmann::json json() const;  // an object, to be added to
  std::string page() const;     // HTML

 private:
  struct Drawn {
    Decimated<Extremes> predicted, held, recorded;
  };
  struct Recording {
    std::string name;
    uint64_t rows = 0;
    std::vector<Drawn> drawn;  // of the first channels; {}: none
  };
  std::vector<double> means_of(const std::vector<double>& sums) const;
  bool one_unit() const;
  std::vector<std::vector<std::string>> error_rows() const;  // the heading, a row a channel, one for all if units add
  std::string tiles_html() const;
  std::string charts_html(const Recording& recording) const;

  PredictionOrigin origin_;
  std::string field_;
  std::vector<sdk::Channel> channels_;
  std::vector<double> predicted_sums_, held_sums_;
  std::vector<uint64_t> counted_;
  std::vector<Recording> recordings_;
  size_t charts_ = 0;
};

}  // namespace headroom
