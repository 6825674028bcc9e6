// A model asked at every step of a recording through headroom.predict/1.
#pragma once

#include <optional>

#include "report/prediction.hpp"
#include "train/predict_input.hpp"

namespace headroom {

// REQUIRES that the model has the interface; `input` has the recording's steps.
// nullopt: stopped by a signal. Error(plugin) where the model's predictions do not suit the source's fields.
std::optional<PredictedRecording> predict_steps(const Setup& setup, PredictInput& input, const Normalizer& normalizer,
                                                const PredictionOrigin& origin);

}  // namespace headroom
