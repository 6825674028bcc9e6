// What a model made of one recording of pictures: how near it came to the target, and a few of them to look at.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/prediction.hpp"

namespace headroom {

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
