// record/: what a run leaves behind. Start here: RunFolder owns the folder and its lock. Nothing here knows LibTorch:
// tensors are byte spans.
//   run_log.hpp      what a run says while it goes         checkpoint.hpp     what it goes on from
//   postmortem.hpp   why it ended                          trained_model.hpp  what others take of it
//   safetensors.hpp  tensors in a file                     torch_state.hpp    those that torch.save wrote
//   output_file.hpp  writing that is whole, or an error    mapped_file.hpp    reading
//   progress.hpp     a bar on a terminal, lines in a pipe  numbers.hpp        numbers and times as text
// The rest (tensorboard, event_command, torch_pickle, torch_zip) is of these; png.hpp is for pictures.
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
  // Makes a new folder under `out`/<name>/ and takes its lock, which lasts as long as this object. What file systems
  // dislike in `name` is replaced. Error(cannot_write).
  static RunFolder create(const std::filesystem::path& out, const std::string& name);
  // Opens an existing one to go on in, and takes its lock. Error(bad_input) when it is not a run folder;
  // Error(cannot_write) when another process holds it: "... is being written by process N".
  static RunFolder open(const std::filesystem::path& folder);
  // The folder of a run whose first process holds the lock, for another one of its processes.
  static RunFolder shared(const std::filesystem::path& folder) { return {folder, -1}; }
  RunFolder(RunFolder&&) noexcept;
  RunFolder& operator=(RunFolder&&) noexcept;
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }
  std::string id() const { return path_.filename().string(); }

 private:
  RunFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::filesystem::path path_;
  int lock_ = -1;
};

// The same folder by a path that ends in its name, as "runs/x/" and "." do not: a run's id is its folder's name.
std::filesystem::path named_folder(const std::filesystem::path& folder);

// The path of an existing run's folder, as named_folder() has it. Error(bad_input) where `folder` is none, with the
// newest run in it.
std::filesystem::path run_path(const std::filesystem::path& folder);

// Whether a process holds the folder's lock now.
bool is_being_written(const std::filesystem::path& folder);

// Writes `bytes` beside `path`, fsync, rename, fsync of the folder. Of several at a time each writes a whole file, and
// the last one stays. Devices, pipes and links are written to. Error(cannot_write) names path and reason. [any]
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// nlohmann's types call themselves for each level when they are copied and written.
bool nests_too_deep(std::string_view json);

// JSON that another process wrote, or somebody by hand, as either of nlohmann's types: null where it is none, or of
// more than 100 levels. [any]
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  Json json = nests_too_deep(text) ? Json() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? Json() : json;
}

// The same of a file; null when it is missing or cannot be read.
nlohmann::json read_json_file(const std::filesystem::path& file);

// Either of nlohmann's types as text; `indent`: spaces a level, -1: one line. Paths, words and logs may hold bytes that
// are no UTF-8: they are replaced. dump() alone would throw at them. [any]
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headroom
