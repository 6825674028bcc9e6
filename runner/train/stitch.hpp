// Combines the predictions of overlapping windows into one series for each recording, where the source says which rows
// a sample shows.
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

// Rows of a field from `first` on; a row has `width` elements.
struct FieldRows {
  size_t field = 0;
  uint64_t first = 0, width = 1;
};

// Finds the rows of a source's field that a model uses as its target. No plugin declares this, so the values are
// compared.
class TargetRows {
 public:
  // Candidates are the floating-point fields that show rows of a recording.
  TargetRows(const std::vector<Field>& fields, const PredictInput& input);
  // Compares outputs of the samples of the batch from `first` on. Both tensors are on the CPU.
  void compare(const Batch& batch, int64_t first, const at::Tensor& prediction, const at::Tensor& target);
  // Whether the source says which rows its samples show.
  bool places_known() const { return places_known_; }
  // The rows that matched in all samples; nullopt: the target is computed in some other way.
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

// A model's outputs, one row for each sample.
struct StitchedOutputs {
  const TensorBytes *prediction, *target;
  const TensorBytes* mask;  // NULL: everything counts
};

// A row that several samples predict gets the mean of their predictions. Rows beyond the ends of the recording, and
// rows that no sample predicts, get none. "hold_last" is the baseline that repeats, over the rows of each sample, the
// last value recorded before them; it is averaged in the same way. The rows are written to `file` as they are complete:
// "prediction", "hold_last", "recorded" (float64 [rows, channels], in measured units), "recording" and "row" (int64
// [rows]). Returns nullopt where a signal stopped it. Error(plugin) where a source's positions decrease;
// Error(cannot_write).
std::optional<PredictedLines> stitch(const Setup& setup, const PredictInput& input, const Normalizer& normalizer,
                                     const FieldRows& target, const StitchedOutputs& outputs,
                                     const PredictionOrigin& origin, const std::filesystem::path& file);

}  // namespace headroom
