// Predictions of a model over a recording, through headroom.predict/1. A model that predicts channels of numbers is
// asked at every step. One that predicts pictures is asked clip by clip, and pictures where clips overlap are averaged.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "plugins/recording.hpp"
#include "report/prediction.hpp"
#include "train/predict_pass.hpp"
#include "train/setup.hpp"

namespace headroom {

// `input` has the steps of the recording. Returns nullopt where a signal stopped it. Error(plugin) where the model's
// predictions do not match the source's fields. REQUIRES that the model has the interface.
std::optional<PredictedRecording> predict_steps(const Setup& setup, PredictInput& input, const Normalizer& normalizer,
                                                const PredictionOrigin& origin);

// Whether the model predicts pictures rather than channels of numbers.
bool predicts_pictures(const Setup& setup);

// Writes a PNG for each step into `folder` as soon as it is complete; at most the pictures of one question are in
// memory. Returns nullopt where a signal stopped it. Error(cannot_write), or Error(plugin) where the model's
// predictions do not match the source's fields. REQUIRES predicts_pictures().
std::optional<PredictedPictures> predict_pictures(const Setup& setup, std::unique_ptr<Recording> recording,
                                                  const Normalizer& normalizer, const PredictionOrigin& origin,
                                                  const std::filesystem::path& folder);

}  // namespace headroom
