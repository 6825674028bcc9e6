// checkpoints/step-00001200/{model,state}.safetensors + checkpoint.json: complete or absent. Written to a temporary
// folder, fsync, rename; `last` and `best` are links beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/budget.hpp"
#include "record/safetensors.hpp"

namespace headroom {

inline constexpr int checkpoint_format = 1;

struct CheckpointView {
  int64_t step = 0;
  std::span<const TensorBytes> model;  // parameters and buffers under the model's names
  std::span<const TensorBytes> state;  // optimizer moments, EMA, accumulators
  nlohmann::json json;                 // everything scalar; gets "format", "step"

  int64_t bytes() const;  // of its tensors
};

class Checkpoints {
 public:
  // `folder` is <run>/checkpoints. Nothing is touched before the first save(), so reading a run that goes on elsewhere
  // is safe: save() makes the folder when it is missing and removes leftovers of interrupted writes; its caller holds
  // the run's lock.
  explicit Checkpoints(std::filesystem::path folder, int64_t keep = 2);
  // Moves `last`, and `best` when asked; keeps the newest `keep` and `best`. A checkpoint of the same step is replaced.
  // Error(cannot_write) leaves every earlier checkpoint as it was. Needs room for one more checkpoint than it keeps.
  // Where the folder lies in memory (tmpfs) and has no such room, older ones go first, but never the newest nor `best`;
  // Error(does_not_fit) where that is not enough.
  std::filesystem::path save(const CheckpointView& checkpoint, bool is_best);
  // Moves `best` to the checkpoint of that step, where it is there and readable: a crash, or a disk that was full, may
  // have come between the checkpoint and its link. The caller holds the run's lock. Error(cannot_write).
  void mend_best(int64_t step) const;
  int64_t removed_for_room() const { return removed_for_room_; }  // checkpoints that went first, in all
  std::optional<std::filesystem::path> last() const;  // newest complete one; falls back over unreadable ones
  std::optional<std::filesystem::path> best() const;

 private:
  void clean() const;
  void put_in_place(const std::filesystem::path& temporary, const std::filesystem::path& final) const;
  void link(const std::string& name, const std::filesystem::path& target) const;
  void prune(int64_t saved_step) const;
  void remove(const std::filesystem::path& checkpoint) const;
  Permit make_room(int64_t bytes);
  void note_bytes_in_memory();

  std::filesystem::path folder_;
  int64_t keep_;
  bool clean_ = false;
  int64_t removed_for_room_ = 0;
  int64_t noted_bytes_ = 0;  // in memory/file_memory.hpp, or there before the first save
};

struct LoadedCheckpoint {
  SafetensorsFile model, state;
  nlohmann::json json;

  // A member of `json`. Error(bad_input) where there is none of that name and type: names the file.
  const nlohmann::json& at(const char* key, nlohmann::json::value_t type) const;
};
// Error(bad_input) when the folder is no checkpoint, of another format, or damaged: names the file.
LoadedCheckpoint load_checkpoint(const std::filesystem::path& folder);

// `word`: best, last, or the path of a checkpoint folder. Error(bad_input, component) where the run has none yet.
std::filesystem::path chosen_checkpoint(const std::filesystem::path& run, const std::string& word,
                                        const std::string& component);

// What the state of a run that averages its weights (train.ema) calls the average of a parameter. Evaluations, and
// whatever else uses a trained model, take it in place of the model's own.
inline std::string average_name(const std::string& parameter) { return "ema/" + parameter; }
inline constexpr const char* plugin_state_name = "plugin_state";  // headroom.state/1's bytes, in the same file

// Of a checkpoint.json: what its run had reserved among the runs of the machine, which a run that goes on from it
// claims at its start. 0: it does not say.
int64_t reserved_bytes_in(const nlohmann::json& checkpoint);

}  // namespace headroom
