// `headroom plugins build DIR` and `plugins watch DIR`: plugins outside this tree, built against this program's SDK.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <system_error>
#include <thread>

#include "cli/commands.hpp"
#include "cli/trainer_program.hpp"
#include "error.hpp"
#include "memory/child_process.hpp"
#include "plugins/library.hpp"
#include "record/output_file.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

// Its exit code. What it prints goes where ours does.
int run_program(const std::vector<std::string>& words) {
  try {
    return wait_for(start_child(words, {.search_path = true})).exit_code();
  } catch (const std::system_error& problem) {
    const std::string advice = words.front() == "cargo"
                                   ? "install Rust to build plugins that are written in it; Debian has it as cargo"
                                   : "install cmake, ninja-build and g++ to build plugins";
    throw Error(Exit::bad_input, "plugins",
                words.front() + " cannot be started (" + problem.code().message() + "): " + advice);
  }
}

fs::path build_folder(const fs::path& folder) { return folder / "build/release"; }

// The libraries right in `folder`: list_plugins() has those of all other folders, too.
std::vector<fs::path> libraries_in(const fs::path& folder) {
  std::vector<fs::path> libraries = list_plugins(std::vector{folder});
  std::erase_if(libraries, [&](const fs::path& library) { return library.parent_path() != folder; });
  return libraries;
}

bool has_file(const fs::path& folder, const char* name) {
  std::error_code error;
  return fs::exists(folder / name, error);
}

// cargo's libwrist.so as wrist.so among the plugins. By renaming: a run may have the old one mapped.
void place_library(const fs::path& made, const fs::path& into) {
  const std::string name = made.filename().string();
  const fs::path to = into / (name.starts_with("lib") ? name.substr(3) : name);
  const fs::path unfinished = to.string() + ".new";
  std::error_code error;
  fs::create_directories(into, error);
  if (!error) fs::copy_file(made, unfinished, fs::copy_options::overwrite_existing, error);
  if (!error) fs::rename(unfinished, to, error);
  if (error) throw cannot_write(to, error.value());
}

bool compile_rust(const fs::path& folder) {
  const fs::path target = folder / "build/cargo", made = target / "release";
  // One of an earlier name would be taken for a plugin of now; cargo puts back what is still made.
  std::error_code gone;
  for (const fs::path& library : libraries_in(made)) fs::remove(library, gone);
  if (run_program({"cargo", "build", "--release", "--manifest-path", (folder / "Cargo.toml").string(), "--target-dir",
                   target.string()}) != 0)
    return false;
  const std::vector<fs::path> libraries = libraries_in(made);
  if (libraries.empty()) {
    throw Error(Exit::plugin, "plugins",
                (folder / "Cargo.toml").string() +
                    " makes no plugin: it needs crate-type = [\"cdylib\"] below [lib], and no build.target of cargo's");
  }
  for (const fs::path& library : libraries) place_library(library, build_folder(folder));
  return true;
}

bool compile_cpp(const fs::path& folder) {
  const fs::path into = build_folder(folder);
  if (!fs::exists(into / "build.ninja")) {  // where the first time failed there is a cache, and nothing to build with
    const int exit_code =
        run_program({"cmake", "-G", "Ninja", "-S", folder.string(), "-B", into.string(), "-DCMAKE_BUILD_TYPE=Release",
                     "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_PREFIX_PATH=" + sdk_folder().string()});
    if (exit_code != 0) return false;
  }
  return run_program({"cmake", "--build", into.string()}) == 0;
}

// A folder may hold plugins of both languages.
bool compile(const fs::path& folder) {
  if (has_file(folder, "CMakeLists.txt") && !compile_cpp(folder)) return false;
  return !has_file(folder, "Cargo.toml") || compile_rust(folder);
}

fs::path checked_folder(const std::string& word) {
  const fs::path folder = fs::absolute(word).lexically_normal();
  // A slash at the end leaves a path without a last name.
  if (has_file(folder, "CMakeLists.txt") || has_file(folder, "Cargo.toml"))
    return folder.has_filename() ? folder : folder.parent_path();
  throw Error(Exit::bad_input, "plugins",
              word +
                  " holds neither CMakeLists.txt nor Cargo.toml: give a plugin's own folder, as headroom new model "
                  "NAME makes it");
}

// The plugins, and the schema of experiments with them.
void build(const fs::path& folder) {
  if (!compile(folder)) throw Error(Exit::plugin, "plugins", folder.string() + " does not build, see above");
  write_file_atomically(folder / "headroom.schema.json", schema_text({build_folder(folder)}) + "\n");
  for (const fs::path& library : libraries_in(build_folder(folder))) std::printf("built %s\n", library.c_str());
}

bool is_source(const fs::path& file) {
  static const std::set<std::string> endings = {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".rs", ".toml"};
  return file.filename() == "CMakeLists.txt" || endings.contains(file.extension().string());
}

// The newest change of what a plugin is made of. Files may come and go meanwhile.
fs::file_time_type last_change(const fs::path& folder) {
  fs::file_time_type newest = fs::file_time_type::min();
  std::error_code gone;
  for (auto entry = fs::recursive_directory_iterator(folder, gone); entry != fs::recursive_directory_iterator();
       entry.increment(gone)) {
    const std::string name = entry->path().filename().string();
    // try_out() writes into build and runs: that would look like a change.
    if (entry->is_directory(gone) && (name == "build" || name == "target" || name == "runs" || name.starts_with('.')))
      entry.disable_recursion_pending();
    if (!is_source(entry->path())) continue;
    const auto changed = fs::last_write_time(entry->path(), gone);
    if (!gone) newest = std::max(newest, changed);
  }
  return newest;
}

// Build, check, ten steps. What fails has said why.
void try_out(const fs::path& folder, const fs::path& experiment) {
  const std::string program = fs::read_symlink("/proc/self/exe").string(), libraries = build_folder(folder).string();
  // In a process of its own: the schema needs plugins opened, and here they would stay as they were at the first build.
  if (run_program({program, "plugins", "build", folder.string()}) != 0) return;
  for (const fs::path& library : libraries_in(build_folder(folder))) {
    std::vector<std::string> words = {program, "plugins", "check", library.string()};
    // A library with LibTorch is a model; its steps read the source as well.
    if (needs_trainer(library)) words.insert(words.end(), {"--with", experiment.string()});
    if (run_program(words) != 0) return;
  }
  run_program({program, "run", experiment.string(), "--no-plan", "--plugin-dir", libraries, "--out",
               (folder / "runs").string(), "--set", "train.max_steps=10"});
}

void watch_folder(const fs::path& folder, const fs::path& experiment) {
  for (fs::file_time_type seen = fs::file_time_type::min();;) {
    const fs::file_time_type changed = last_change(folder);
    // Not only newer: a file that was removed or put back is a change, too.
    if (changed != seen) {
      seen = changed;
      try_out(folder, experiment);
      std::printf("-- waiting for a change in %s; Ctrl-C ends\n", folder.c_str());
      std::fflush(stdout);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
}

}  // namespace

void add_plugins_build(CLI::App& plugins) {
  auto folder = std::make_shared<std::string>();
  auto* build_command = plugins.add_subcommand("build", "Build a plugin's folder against this program");
  build_command->footer("Example: headroom plugins build wrist");
  build_command->add_option("folder", *folder, "Folder with its CMakeLists.txt or Cargo.toml")->required();
  build_command->callback([folder] { build(checked_folder(*folder)); });

  auto experiment = std::make_shared<std::string>();
  auto* watch_command = plugins.add_subcommand("watch", "Build, check and run ten steps at each save");
  watch_command->footer("Example: headroom plugins watch wrist");
  watch_command->add_option("folder", *folder, "Folder with its CMakeLists.txt or Cargo.toml")->required();
  watch_command->add_option("--with", *experiment, "Experiment to try it with; default: NAME.toml of the folder NAME");
  watch_command->callback([folder, experiment] {
    const fs::path where = checked_folder(*folder);
    const fs::path with = experiment->empty() ? where / (where.filename().string() + ".toml") : fs::path(*experiment);
    std::error_code error;
    if (!fs::exists(with, error))
      throw Error(Exit::bad_input, "plugins", with.string() + " is not there: give an experiment with --with");
    watch_folder(where, with);
  });
}

}  // namespace headroom
