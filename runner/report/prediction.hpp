// What a model did on one recording, of numbers or of pictures: its errors, a table of them, a page.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
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

// What a model made of one recording of pictures: how near it came to the target, and a few of them to look at.

struct PictureStep {
  // Of the prediction against the target, as 8-bit pictures; infinite where they are equal, none without a target.
  std::optional<double> psnr_db;
  std::optional<double> before_psnr_db;  // of what there was before
};

// Data URIs; "" where there is none.
struct ShownPicture {
  uint64_t step = 0;
  std::string before, predicted, target;
};

struct PredictedPictures {
  PredictionOrigin origin;
  uint64_t horizon = 0;  // steps predicted at once
  std::string before;    // the field there was before; "" where there is none
  std::vector<PictureStep> steps;
  std::vector<ShownPicture> shown;

  // Means of decibels over the steps whose pictures differ from the target: one that is equal would make the mean
  // infinite. Infinite where all are equal.
  std::optional<double> psnr_db() const;
  std::optional<double> before_psnr_db() const;

  std::string text() const;  // for terminals
  nlohmann::json json() const;
  std::string page() const;  // HTML
};

}  // namespace headroom
