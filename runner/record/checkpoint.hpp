// A checkpoint is a folder, checkpoints/step-00001200/, with model.safetensors, state.safetensors and checkpoint.json.
// It is complete or absent: it is written to a temporary folder, synced and renamed. `last` and `best` are links beside
// it.
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
  nlohmann::json json;                 // everything scalar; save() adds "format" and "step"

  int64_t bytes() const;  // of its tensors
};

class Checkpoints {
 public:
  // `folder` is <run>/checkpoints. Nothing is written before the first save(), so a run that another process continues
  // can be read safely. save() makes the folder where it is missing and removes leftovers of interrupted writes; its
  // caller holds the run's lock.
  explicit Checkpoints(std::filesystem::path folder, int64_t keep = 2);
  // Writes a checkpoint, then moves `last` to it, and `best` with `is_best`. Keeps the newest `keep` and `best`. A
  // checkpoint of the same step is replaced. Error(cannot_write) leaves every earlier checkpoint as it was. It needs
  // room for one more checkpoint than it keeps. Where the folder is in memory (tmpfs) without that room, older ones are
  // removed first, but never the newest or `best`; Error(does_not_fit) where that is not enough.
  std::filesystem::path save(const CheckpointView& checkpoint, bool is_best);
  // Moves `best` to the checkpoint of that step, where it exists and is readable. A crash or a full disk may have
  // prevented save() from moving the link. The caller holds the run's lock. Error(cannot_write).
  void mend_best(int64_t step) const;
  // The folder with all that was saved here. What cannot be removed stays.
  void remove_all();
  int64_t removed_for_room() const { return removed_for_room_; }  // number of checkpoints that were removed first
  std::optional<std::filesystem::path> last() const;              // the newest one that is readable
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

  // A member of `json`. Error(bad_input), naming the file, where there is none of that name and type.
  const nlohmann::json& at(const char* key, nlohmann::json::value_t type) const;
};
// Error(bad_input), naming the file, when the folder is no checkpoint, has another format or is damaged.
LoadedCheckpoint load_checkpoint(const std::filesystem::path& folder);

// `word`: best, last, or the path of a checkpoint folder. Error(bad_input, component) where the run has none yet.
std::filesystem::path chosen_checkpoint(const std::filesystem::path& run, const std::string& word,
                                        const std::string& component);

// The name of a parameter's average in the state of a run with train.ema. Evaluations, and all other uses of a trained
// model, take the average in place of the parameter.
inline std::string average_name(const std::string& parameter) { return "ema/" + parameter; }
inline constexpr const char* plugin_state_name = "plugin_state";  // headroom.state/1's bytes, in the same file

// The memory that the run had reserved when it wrote this checkpoint.json. A run that resumes from it claims the same.
// 0: not stored.
int64_t reserved_bytes_in(const nlohmann::json& checkpoint);

}  // namespace headroom
