#include "record/checkpoint.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <sstream>
#include <unistd.h>
#include <utility>

#include "error.hpp"
#include "memory/file_memory.hpp"
#include "memory/readable.hpp"
#include "record/output_file.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_prefix = "step-";
constexpr std::string_view temporary_prefix = ".tmp-";
constexpr std::string_view replaced_prefix = ".old-";  // the folder that a save of the same step replaces

std::string step_name(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

std::string mine() { return "-" + std::to_string(::getpid()); }

std::optional<int64_t> step_of(const std::string& name) {
  int64_t step = 0;
  if (!name.starts_with(step_prefix)) return std::nullopt;
  const char* end = name.data() + name.size();
  auto [stop, error] = std::from_chars(name.data() + step_prefix.size(), end, step);
  // Only as step_name() writes it: somebody's own step-12 is no checkpoint of this run.
  if (error != std::errc() || stop != end || name != step_name(step)) return std::nullopt;
  return step;
}

// Newest first. A folder that is missing or unreadable holds none.
// By number: beyond eight digits the order of the names is another.
std::map<int64_t, fs::path, std::greater<>> steps_in(const fs::path& folder) {
  std::map<int64_t, fs::path, std::greater<>> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (const auto step = step_of(name)) {
      steps.insert_or_assign(*step, entry.path());
    } else if (name.starts_with(replaced_prefix)) {
      // Between the two renames of put_in_place() it is the only one of its step: who resumes reads before clean().
      if (const auto replaced = step_of(name.substr(replaced_prefix.size()))) steps.emplace(*replaced, entry.path());
    }
  }
  return steps;
}

// Maps the tensors and checks their headers, which costs little for any size. Damage inside tensors is not seen.
bool readable(const fs::path& checkpoint) {
  try {
    load_checkpoint(checkpoint);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void rename_or_throw(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw cannot_write(to, errno);
}

void write_files(const fs::path& folder, const CheckpointView& checkpoint) {
  write_safetensors(folder / "model.safetensors", checkpoint.model);
  write_safetensors(folder / "state.safetensors", checkpoint.state);
  nlohmann::json json = checkpoint.json;
  json["format"] = checkpoint_format;
  json["step"] = checkpoint.step;
  OutputFile file(folder / "checkpoint.json");
  file.write(json_text(json, 2) + "\n");
  file.finish();
  // The names inside as well, before the folder gets its own: what is called step-... is complete after a power cut.
  sync_folder(folder);
}

// What a folder's files hold of a tmpfs; 0 on a disk.
int64_t bytes_in_memory(const fs::path& folder) {
  if (!lies_in_memory(folder)) return 0;
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) bytes += static_cast<int64_t>(entry.file_size(error));
  }
  return bytes;
}

Error no_room_in_memory(const fs::path& folder, int64_t bytes) {
  return {Exit::does_not_fit, "checkpoint",
          folder.string() + " is in memory (tmpfs), where a checkpoint of " + size_text(bytes) +
              " counts as held and finds no room: put the run on a disk with --out, or raise memory.limit"};
}

}  // namespace

Checkpoints::Checkpoints(fs::path folder, int64_t keep)
    : folder_(std::move(folder)), keep_(std::max<int64_t>(keep, 1)) {}

int64_t CheckpointView::bytes() const {
  size_t sum = 0;
  for (const TensorBytes& tensor : model) sum += tensor.data.size();
  for (const TensorBytes& tensor : state) sum += tensor.data.size();
  return static_cast<int64_t>(sum);
}

fs::path Checkpoints::save(const CheckpointView& checkpoint, bool is_best) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw cannot_write(folder_, error.value());
  // Only here, where the caller holds the run's lock: to a reader a leftover may be a write that still goes on.
  if (!std::exchange(clean_, true)) {
    clean();
    noted_bytes_ = bytes_in_memory(folder_);
  }

  const std::string name = step_name(checkpoint.step);
  const fs::path temporary = folder_ / (std::string(temporary_prefix) + name + mine());
  const fs::path final = folder_ / name;
  // Held until the bytes are written and noted, so that the same room is not granted twice.
  const Permit room = make_room(checkpoint.bytes());
  try {
    if (!fs::create_directory(temporary, error) && error) throw cannot_write(temporary, error.value());
    write_files(temporary, checkpoint);
    put_in_place(temporary, final);
    sync_folder(folder_);
  } catch (...) {
    fs::remove_all(temporary, error);
    throw;
  }
  // Links and removals only once the new one is safe: a failure before them leaves every earlier one as it was.
  link("last", name);
  if (is_best) link("best", name);
  sync_folder(folder_);
  prune(checkpoint.step);
  note_bytes_in_memory();
  return final;
}

Permit Checkpoints::make_room(int64_t bytes) {
  Permit room = make_room_for_file(folder_, bytes);
  if (room) return room;
  std::vector<fs::path> older;  // newest first
  for (const auto& [step, path] : steps_in(folder_)) older.push_back(path);
  // Of the readable ones: a damaged newest one may go, the one that a resume would take may not.
  const std::optional<fs::path> newest = last(), best_one = best();
  for (; !room && !older.empty(); older.pop_back()) {
    if (older.back() == newest || older.back() == best_one) continue;
    remove(older.back());
    ++removed_for_room_;
    note_bytes_in_memory();
    room = make_room_for_file(folder_, bytes);
  }
  if (!room) throw no_room_in_memory(folder_, bytes);
  return room;
}

void Checkpoints::remove_all() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  note_bytes_in_memory();
}

void Checkpoints::note_bytes_in_memory() {
  // Counted again and noted as a difference, which includes removed files.
  const int64_t bytes = bytes_in_memory(folder_);
  note_written(folder_, bytes - std::exchange(noted_bytes_, bytes));
}

std::optional<fs::path> Checkpoints::last() const {
  for (const auto& [step, path] : steps_in(folder_)) {
    if (readable(path)) return path;
  }
  return std::nullopt;
}

std::optional<fs::path> Checkpoints::best() const {
  std::error_code error;
  const fs::path target = fs::read_symlink(folder_ / "best", error);
  if (error) return std::nullopt;
  // The second as in steps_in().
  for (const fs::path& found : {folder_ / target, folder_ / (std::string(replaced_prefix) + target.string())}) {
    if (readable(found)) return found;
  }
  return std::nullopt;
}

void Checkpoints::mend_best(int64_t step) const {
  std::error_code error;
  const std::string name = step_name(step);
  if (fs::read_symlink(folder_ / "best", error) != name && readable(folder_ / name)) link("best", name);
}

// A crash between the two renames of put_in_place() leaves the replaced folder as the only one of its step: it goes
// back.
void Checkpoints::clean() const {
  std::error_code error;
  std::vector<std::string> leftovers;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with(replaced_prefix) || name.starts_with(temporary_prefix)) leftovers.push_back(std::move(name));
  }
  for (const std::string& name : leftovers) {
    const fs::path original = folder_ / name.substr(replaced_prefix.size());
    if (name.starts_with(replaced_prefix) && !fs::exists(original, error)) {
      rename_or_throw(folder_ / name, original);
    } else {
      fs::remove_all(folder_ / name, error);
    }
  }
}

void Checkpoints::put_in_place(const fs::path& temporary, const fs::path& final) const {
  if (::rename(temporary.c_str(), final.c_str()) == 0) return;
  // rename() replaces only an empty folder; POSIX allows either error for one that is not.
  if (errno != ENOTEMPTY && errno != EEXIST) throw cannot_write(final, errno);
  // One of this step exists. Exchanging the two leaves no moment without it; where a file system cannot, two renames
  // and clean() do.
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE) != 0) {
    const fs::path replaced = folder_ / (std::string(replaced_prefix) + final.filename().string());
    rename_or_throw(final, replaced);
    rename_or_throw(temporary, final);
    sync_folder(folder_);
    rename_or_throw(replaced, temporary);
  }
  std::error_code error;
  fs::remove_all(temporary, error);
}

void Checkpoints::link(const std::string& name, const fs::path& target) const {
  // The target is a name inside the folder: a run folder may be moved. symlink() replaces nothing, rename() does.
  const fs::path temporary = folder_ / (std::string(temporary_prefix) + name + mine());
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_symlink(target, temporary, error);
  if (error) throw cannot_write(temporary, error.value());
  rename_or_throw(temporary, folder_ / name);
}

// Steps after the saved one belong to a course that was left (their checkpoints could not be read on resume): they go
// first.
void Checkpoints::prune(int64_t saved_step) const {
  std::error_code error;
  const fs::path best = fs::read_symlink(folder_ / "best", error);
  int64_t kept = 0;
  for (const auto& [step, path] : steps_in(folder_)) {
    if (step <= saved_step && kept++ < keep_) continue;
    if (step_name(step) != best) remove(path);
  }
}

void Checkpoints::remove(const fs::path& checkpoint) const {
  std::error_code error;
  // Renamed first: a folder called step-... is complete at every moment.
  const fs::path doomed =
      folder_ / (std::string(temporary_prefix) + "pruned-" + checkpoint.filename().string() + mine());
  fs::rename(checkpoint, doomed, error);
  if (!error) fs::remove_all(doomed, error);
}

namespace {

Error refuse(const fs::path& file, const std::string& what) {
  return Error(Exit::bad_input, "checkpoint", file.string() + ": " + what);
}

nlohmann::json parse(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream.is_open()) throw refuse(file, "cannot be read");
  nlohmann::json json = parse_json(text.view());
  if (!json.is_object()) throw refuse(file, "is damaged: not a JSON object");
  return json;
}

}  // namespace

LoadedCheckpoint load_checkpoint(const fs::path& folder) {
  const fs::path file = folder / "checkpoint.json";
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw refuse(folder, "is not a checkpoint: there is no such folder");
  if (!fs::is_regular_file(file, error)) throw refuse(folder, "is not a checkpoint: it holds no checkpoint.json");
  nlohmann::json json = parse(file);
  // Format first: what the other keys mean depends on it.
  auto format = json.find("format");
  if (format == json.end() || !format->is_number_integer()) {
    throw refuse(file, "is not a checkpoint's: it holds no format number");
  }
  if (*format != checkpoint_format) {
    throw refuse(file,
                 "has format " + format->dump() + "; this Headroom reads format " + std::to_string(checkpoint_format));
  }
  auto step = json.find("step");
  if (step == json.end() || !step->is_number_unsigned()) throw refuse(file, "is damaged: it holds no step");
  return {SafetensorsFile(folder / "model.safetensors"), SafetensorsFile(folder / "state.safetensors"),
          std::move(json)};
}

fs::path chosen_checkpoint(const fs::path& run, const std::string& word, const std::string& component) {
  if (word != "best" && word != "last") return word;
  const Checkpoints checkpoints(run / "checkpoints");
  const auto found = word == "best" ? checkpoints.best() : checkpoints.last();
  if (!found) throw Error(Exit::bad_input, component, run.string() + " has no '" + word + "' checkpoint yet");
  return *found;
}

int64_t reserved_bytes_in(const nlohmann::json& checkpoint) {
  const nlohmann::json::json_pointer place("/position/reserved_bytes");
  const bool says = checkpoint.contains(place) && checkpoint.at(place).is_number_integer();
  return says ? checkpoint.at(place).get<int64_t>() : 0;
}

const nlohmann::json& LoadedCheckpoint::at(const char* key, nlohmann::json::value_t type) const {
  const auto found = json.find(key);
  if (found != json.end() && found->type() == type) return *found;
  throw refuse(model.path().parent_path() / "checkpoint.json", std::string("is damaged: it holds no ") + key);
}

}  // namespace headroom
