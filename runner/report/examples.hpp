// Samples of the validation split with what the model makes of them: series and pictures, early and late in training.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

// examples.json of a run: {"format": 1, "first": EVALUATION, "last": EVALUATION}. An EVALUATION has "step", "epoch" and
// "samples", each {"sample": its place in the split, "outputs": [OUTPUT]}. An OUTPUT has "name", "unit", "kind":
//   "series":  "stride", "channels": [{"channel", "prediction": [numbers], "target": [numbers]}]; null does not count
//   "picture": "prediction", "target", "inputs": [{"name", "picture"}], as data URIs
inline constexpr const char* examples_file = "examples.json";

// Of examples.json; "" where there is none, or nothing in it can be drawn.
std::string examples_html(const std::filesystem::path& run);

}  // namespace headroom
