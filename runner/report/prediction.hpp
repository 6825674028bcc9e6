// Predictions on one recording, of numbers or of pictures: errors, a table, a page.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
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
  nlohmann::json json() const;  // an object; the caller may add to it
};

// A table of errors, whose first row is the heading: for terminals, and HTML.
std::string error_text(const std::vector<std::vector<std::string>>& rows);
std::string error_section(const std::vector<std::vector<std::string>>& rows);

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

  // The table of errors: heading, a row for each channel, and one for all.
  std::vector<std::vector<std::string>> error_rows() const;
  std::string table() const;  // of them, for terminals
  nlohmann::json json() const;
  std::string page() const;  // HTML
};

// What a model made of one recording of pictures: how near it came to the target, and a few of them to look at.

struct PictureStep {
  // PSNR of the prediction against the target, as 8-bit pictures; infinite where they are equal, none without a target.
  std::optional<double> psnr_db;
  std::optional<double> before_psnr_db;  // the same for the input picture
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

  // Mean PSNR over the steps whose pictures differ from the target, since an equal picture would make the mean
  // infinite. Infinite where all are equal.
  std::optional<double> psnr_db() const;
  std::optional<double> before_psnr_db() const;

  std::string text() const;  // for terminals
  nlohmann::json json() const;
  std::string page() const;  // HTML
};

}  // namespace headroom
