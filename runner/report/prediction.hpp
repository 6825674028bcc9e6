// What a model did on one recording, as measured: its errors, a table of them, a page.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headroom/sdk/fields.hpp"

namespace headroom {

// Which run predicted what.
struct PredictionOrigin {
  std::string run, input, checkpoint;  // paths
  int64_t trained_steps = 0;

  std::string title() const;    // of a page
  std::string heading() const;  // HTML
  nlohmann::json json() const;  // an object, to be added to
};

struct PredictedRecording {
  PredictionOrigin origin;
  uint64_t horizon = 0;                // steps predicted at once
  std::vector<sdk::Channel> channels;  // each with a name; std: of the run's data
  std::vector<double> recorded;        // [steps, channels], as the rest
  std::vector<double> open_loop, ensembled, held;

  uint64_t steps() const { return recorded.size() / channels.size(); }
  // Mean absolute error of each channel, in its unit.
  std::vector<double> errors(const std::vector<double>& values) const;
  // Over all channels, in standard deviations of the run's data, so that units do not mix.
  double error_in_std(const std::vector<double>& values) const;

  // Of errors: the heading, a row a channel, and one for all.
  std::vector<std::vector<std::string>> error_rows() const;
  std::string table() const;  // of them, for terminals
  nlohmann::json json() const;
  std::string page() const;  // HTML
};

}  // namespace headroom
