// The predictions of windows put together: one line a recording, where the source says which rows a sample shows.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "data/normalizer.hpp"
#include "record/safetensors.hpp"
#include "report/predicted_lines.hpp"
#include "train/predict_pass.hpp"
#include "train/setup.hpp"

namespace headroom {

// Rows of a field, each of `width` elements, from `first` on.
struct FieldRows {
  size_t field = 0;
  uint64_t first = 0, width = 1;
};

// Finds which rows of a source's field a model's target is: no plugin says so, but their values are equal.
class TargetRows {
 public:
  // Candidates are the floating-point fields that show rows of a recording.
  TargetRows(const std::vector<Field>& fields, const PredictInput& input);
  // Outputs of samples of the batch from `first` on, on the CPU.
  void compare(const Batch& batch, int64_t first, const at::Tensor& prediction, const at::Tensor& target);
  // Whether the source says which rows its samples show.
  bool places_known() const { return places_known_; }
  // What all samples agree on; nullopt: the target is made another way.
  std::optional<FieldRows> found() const;

 private:
  struct Candidate {
    size_t field = 0;
    uint64_t rows = 0, width = 1;
    std::optional<std::vector<uint64_t>> firsts = {};  // nullopt: nothing was compared yet
  };
  const std::vector<Field>& fields_;
  std::vector<Candidate> candidates_;
  bool places_known_ = false;
};

// Of a model's outputs, a row a sample.
struct StitchedOutputs {
  const TensorBytes *prediction, *target;
  const TensorBytes* mask;  // NULL: everything counts
};

// A row that several samples reach gets the mean of what they predict for it; rows beyond the recording's ends and rows
// that no sample reaches have none. "Hold last" holds over each sample's rows what was recorded last before them, and
// is averaged alike. Lines go to `file` as they come: "prediction", "hold_last", "recorded" (float64 [rows, channels],
// as measured), "recording" and "row" (int64 [rows]). nullopt: stopped by a signal. Error(plugin) where a source's
// positions fall, Error(cannot_write).
std::optional<PredictedLines> stitch(const Setup& setup, const PredictInput& input, const Normalizer& normalizer,
                                     const FieldRows& target, const StitchedOutputs& outputs,
                                     const PredictionOrigin& origin, const std::filesystem::path& file);

}  // namespace headroom
