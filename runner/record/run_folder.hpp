// record/: the files of a run. Start here: RunFolder owns the folder and its lock. Nothing here uses LibTorch:
// tensors are byte spans.
//   run_log.hpp      what a run logs                       checkpoint.hpp     what it resumes from
//   postmortem.hpp   why it ended                          trained_model.hpp  a trained model, for other programs
//   safetensors.hpp  tensors in a file                     torch_state.hpp    those that torch.save wrote
//   output_file.hpp  writing whole files                   mapped_file.hpp    reading
//   progress.hpp     a bar on a terminal, lines in a pipe  numbers.hpp        numbers and times as text
//   png.hpp          pictures
// The others (tensorboard, event_command, torch_pickle, torch_zip) are used by these only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headroom {

// runs/<name>/<time>-<id>/ : experiment.toml, events.jsonl, TensorBoard events, metrics.csv, memory.jsonl,
// summary.json, checkpoints/.
class RunFolder {
 public:
  // Makes a new folder in `out`/<name>/ and takes its lock, which this object holds. Characters of `name` that file
  // systems do not allow are replaced. Error(cannot_write).
  static RunFolder create(const std::filesystem::path& out, const std::string& name);
  // Opens an existing run folder to resume in, and takes its lock. Error(bad_input) when it is not a run folder;
  // Error(cannot_write) when another process holds the lock: "... is being written by process N".
  static RunFolder open(const std::filesystem::path& folder);
  // The folder of a run whose first process holds the lock, for another one of its processes.
  static RunFolder shared(const std::filesystem::path& folder) { return {folder, -1}; }
  RunFolder(RunFolder&&) noexcept;
  RunFolder& operator=(RunFolder&&) noexcept;
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }
  std::string id() const { return path_.filename().string(); }
  // For programs that start this one: writes the folder's absolute path, as one line, to `file`, unless that is empty.
  // Error(cannot_write).
  void tell(const std::filesystem::path& file) const;

 private:
  RunFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::filesystem::path path_;
  int lock_ = -1;
};

// The same folder, by a path whose last part is its name, unlike "runs/x/" and ".". That name is the run's id.
std::filesystem::path named_folder(const std::filesystem::path& folder);

// named_folder() of an existing run. Error(bad_input) where `folder` is not a run; the sentence names the newest run in
// it.
std::filesystem::path run_path(const std::filesystem::path& folder);

// Whether a process holds the folder's lock now.
bool is_being_written(const std::filesystem::path& folder);

// Replaces `path` by a file with `bytes`: writes a temporary file in the same folder, syncs, renames, and syncs the
// folder. Of several writers at a time each writes a whole file, and the last one stays. Devices, pipes and links are
// written to directly. Error(cannot_write) names path and reason. [any]
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// Whether the JSON nests deeper than 100 levels. nlohmann's types recurse once for each level when they are copied and
// written.
bool nests_too_deep(std::string_view json);

// Parses JSON that another process or a person wrote, as either of nlohmann's types. Null where it is not JSON or
// nests_too_deep(). [any]
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  Json json = nests_too_deep(text) ? Json() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? Json() : json;
}

// The same for a file; null when it is missing or cannot be read.
nlohmann::json read_json_file(const std::filesystem::path& file);

// Either of nlohmann's types as text. `indent`: spaces for each level, -1: one line. Bytes that are not UTF-8, as in
// paths, words and logs, are replaced; dump() alone would throw. [any]
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headroom
