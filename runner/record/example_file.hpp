// examples.json of a run: {"format": 1, "first": EVALUATION, "last": EVALUATION}. An EVALUATION has "step", "epoch" and
// "samples", each {"sample": its place in the split, "outputs": [OUTPUT]}. An OUTPUT has "name", "unit", "kind":
//   "series":  "stride", "channels": [{"channel", "prediction": [numbers], "target": [numbers]}]; null does not count
//   "picture": "prediction", "target", "inputs": [{"name", "picture"}], as data URIs
#pragma once

namespace headroom {

inline constexpr const char* examples_file = "examples.json";

}  // namespace headroom
