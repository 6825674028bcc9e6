#include "installation.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <spawn.h>
#include <sys/wait.h>
#include <torch/version.h>
#include <unistd.h>

#include "headroom/model.hpp"

extern char** environ;

namespace headroom::python {

namespace {

namespace fs = std::filesystem;

// One "key=value" a line. It imports no torch.
constexpr const char* kQuestion = R"py(
import importlib.util, os, sys, sysconfig
v = sysconfig.get_config_var
print("version=" + ".".join(map(str, sys.version_info[:3])))
short = "%d.%d%s" % (sys.version_info[0], sys.version_info[1], getattr(sys, "abiflags", ""))
names = [n for n in (v("INSTSONAME"), v("LDLIBRARY"), "libpython%s.so.1.0" % short, "libpython%s.so" % short) if n and ".so" in n]
folders = [v("LIBDIR") or "", os.path.join(v("LIBDIR") or "", v("MULTIARCH") or ""), os.path.join(sys.base_prefix, "lib")]
for folder in folders:
    for name in names:
        if folder and os.path.exists(os.path.join(folder, name)):
            print("library=" + os.path.join(folder, name))
for folder in sys.path[1:]:
    print("path=" + folder)
sys.path.pop(0)
spec = importlib.util.find_spec("torch")
if spec and spec.origin:
    folder = os.path.dirname(spec.origin)
    print("torch=" + folder)
    scope = {}
    with open(os.path.join(folder, "version.py")) as file:
        exec(file.read(), scope)
    print("torch_version=" + str(scope.get("__version__")))
)py";

// What a program writes to its output. "" where it cannot be run or fails.
std::string output_of(const fs::path& program, const char* script) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string path = program.string(), option = "-c", text = script;
  std::array<char*, 4> arguments = {path.data(), option.data(), text.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawn(&child, path.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string output;
  std::array<char, 4096> buffer{};
  for (ssize_t read_bytes = 0; failed == 0; output.append(buffer.data(), static_cast<size_t>(read_bytes))) {
    do read_bytes = read(ends[0], buffer.data(), buffer.size());
    while (read_bytes < 0 && errno == EINTR);
    if (read_bytes <= 0) break;
  }
  close(ends[0]);
  int status = 1;
  if (failed == 0) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  return failed == 0 && status == 0 ? output : "";
}

fs::path program_in(const fs::path& environment) {
  for (const char* name : {"bin/python3", "bin/python"}) {
    std::error_code ignored;
    if (fs::exists(environment / name, ignored)) return environment / name;
  }
  return {};
}

fs::path environment_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? fs::path(value) : fs::path();
}

// .../ENVIRONMENT/lib/python3.11/site-packages/torch/lib
fs::path environment_of_torch() {
  fs::path folder = host_torch_folder();
  for (int up = 0; up < 5; ++up) folder = folder.parent_path();
  return folder;
}

std::vector<fs::path> usual_environments() {
  return {environment_of("VIRTUAL_ENV"), environment_of("CONDA_PREFIX"), environment_of_torch()};
}

// Two files of equal bytes in 64 places, over all of their length: two builds differ everywhere.
bool same_content(const fs::path& a, const fs::path& b) {
  std::error_code problem;
  if (fs::equivalent(a, b, problem)) return true;
  const auto bytes = fs::file_size(a, problem);
  if (problem || bytes != fs::file_size(b, problem) || problem) return false;
  constexpr uint64_t places = 64, piece = 65536;
  std::ifstream first(a, std::ios::binary), second(b, std::ios::binary);
  std::vector<char> left(piece), right(piece);
  for (uint64_t i = 0; i < places; ++i) {
    const auto at = static_cast<std::streamoff>(bytes > piece ? (bytes - piece) / (places - 1) * i : 0);
    for (auto [file, buffer] : {std::pair(&first, &left), std::pair(&second, &right)}) {
      file->clear();
      file->seekg(at);
      file->read(buffer->data(), piece);
    }
    if (first.gcount() != second.gcount() ||
        std::memcmp(left.data(), right.data(), static_cast<size_t>(first.gcount())) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

fs::path host_torch_folder() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&at::globalContext), &found) == 0) return {};
  std::error_code ignored;
  return fs::weakly_canonical(found.dli_fname, ignored).parent_path();
}

fs::path find_program(const fs::path& wanted, const std::string& option) {
  std::error_code ignored;
  if (!wanted.empty()) {
    if (fs::is_regular_file(wanted, ignored)) return wanted;
    if (fs::path found = program_in(wanted); !found.empty()) return found;
    sdk::invalid(option + " is " + wanted.string() + ", where there is neither a program nor bin/python3");
  }
  for (const fs::path& place : usual_environments()) {
    if (place.empty()) continue;
    if (fs::path found = program_in(place); !found.empty()) return found;
  }
  return {};
}

Installation find_installation(const fs::path& wanted) {
  Installation found;
  found.program = find_program(wanted, "model.options.python");
  if (found.program.empty()) {
    sdk::invalid("no Python was found (looked at $VIRTUAL_ENV, $CONDA_PREFIX and " +
                 usual_environments().back().string() +
                 "): activate the environment of the model, or set model.options.python to its folder");
  }
  const std::string answer = output_of(found.program, kQuestion);
  for (size_t begin = 0; begin < answer.size();) {
    const size_t end = std::min(answer.find('\n', begin), answer.size());
    const std::string line = answer.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = line.substr(0, equals), value = line.substr(equals + 1);
    if (key == "version") found.version = value;
    if (key == "library" && std::ranges::count(found.libraries, value) == 0) found.libraries.push_back(value);
    if (key == "path") found.search_path.push_back(value);
    if (key == "torch") found.torch_folder = value;
    if (key == "torch_version") found.torch_version = value;
  }
  if (found.version.empty()) sdk::invalid(found.program.string() + " does not run as a Python 3 program");
  if (found.libraries.empty()) {
    sdk::invalid("the Python " + found.version + " of " + found.program.string() +
                 " has no shared libpython, which runs a module inside Headroom: install it (Debian: libpython" +
                 found.version.substr(0, found.version.rfind('.')) +
                 "), or use a Python that was built with --enable-shared");
  }
  return found;
}

void require_same_torch(const Installation& python) {
  const std::string ours = TORCH_VERSION;
  if (python.torch_version.empty()) {
    sdk::invalid("the Python of " + python.program.string() + " has no torch: install torch " + ours +
                 " there, the version that Headroom was built with");
  }
  const fs::path theirs = python.torch_folder / "lib", host = host_torch_folder();
  for (const char* library : {"libtorch_cpu.so", "libc10.so"}) {
    if (same_content(theirs / library, host / library)) continue;
    sdk::invalid("the torch of " + python.program.string() + " is " + python.torch_version + " (" +
                 (theirs / library).string() + "), which is not the LibTorch that Headroom was built with, " + ours +
                 " (" + (host / library).string() +
                 "): both would be in one process; install that one there, or build Headroom with LIBTORCH_DIR=" +
                 python.torch_folder.string());
  }
}

}  // namespace headroom::python
