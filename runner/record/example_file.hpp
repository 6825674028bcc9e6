// examples.json of a run: {"format": 1, "first": EVALUATION, "last": EVALUATION}, where an EVALUATION has "step",
// "epoch" and "samples", each {"sample": its place in the split, "outputs": [OUTPUT]}. An OUTPUT has "name", "unit" and
// "kind":
//   "series"   "stride" and "channels": [{"channel", "prediction": [numbers], "target": [numbers]}]; null: does not
//   count "picture"  "prediction", "target" and "inputs": [{"name", "picture"}], as data URIs
#pragma once

namespace headroom {

inline constexpr const char* examples_file = "examples.json";

}  // namespace headroom
