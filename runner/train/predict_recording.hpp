// A model asked over a recording through headroom.predict/1. Where it predicts channels of numbers, at every step;
// where it predicts pictures, clip after clip, and what overlaps is averaged.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "plugins/recording.hpp"
#include "report/prediction.hpp"
#include "train/predict_pass.hpp"
#include "train/setup.hpp"

namespace headroom {

// REQUIRES that the model has the interface; `input` has the recording's steps.
// nullopt: stopped by a signal. Error(plugin) where the model's predictions do not suit the source's fields.
std::optional<PredictedRecording> predict_steps(const Setup& setup, PredictInput& input, const Normalizer& normalizer,
                                                const PredictionOrigin& origin);

// Whether what the model predicts are pictures, and not channels of numbers.
bool predicts_pictures(const Setup& setup);

// REQUIRES predicts_pictures(). Writes a PNG a step into `folder` as soon as it is known: no more than a question's
// pictures are held. nullopt: stopped by a signal.
// Error(cannot_write), or Error(plugin) where the model's predictions do not suit the source's fields.
std::optional<PredictedPictures> predict_pictures(const Setup& setup, std::unique_ptr<Recording> recording,
                                                  const Normalizer& normalizer, const PredictionOrigin& origin,
                                                  const std::filesystem::path& folder);

}  // namespace headroom
