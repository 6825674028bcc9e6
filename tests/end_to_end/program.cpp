#include "program.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <grp.h>
#include <iterator>
#include <spawn.h>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace headroom {

namespace {

namespace fs = std::filesystem;

fs::path scratch_file(const std::string& what) {
  static int number = 0;
  return fs::temp_directory_path() /
         ("headroom-test-" + std::to_string(getpid()) + "-" + std::to_string(number++) + "." + what);
}

std::string take_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::error_code ignored;
  fs::remove(path, ignored);
  return text;
}

// The user's cache and the machine's other runs are not for tests; where plugins are looked for is what each test says.
std::vector<std::string> environment_of(const StartPlace& place) {
  std::vector<std::string> environment = place.environment;  // the first of equal names wins
  environment.push_back(std::string("XDG_CACHE_HOME=") + HEADROOM_BUILD_DIR + "/tests/cache");
  environment.push_back(std::string("HEADROOM_RESERVATIONS=") + HEADROOM_BUILD_DIR + "/tests/reservations");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    if (!variable.starts_with("HEADROOM_") || variable.starts_with("HEADROOM_MAX_CPU_ISA="))
      environment.push_back(variable);
  }
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// Of a front's children: not one that is only asked for its libraries or for a plugin's description.
bool does_work(pid_t child) {
  std::ifstream stream("/proc/" + std::to_string(child) + "/cmdline", std::ios::binary);
  std::string program, command;
  std::getline(stream, program, '\0');
  std::getline(stream, command, '\0');
  return program.ends_with("/headroom-train") && !command.empty() && command != "describe";
}

// This process's supplementary groups for a scope: a child is born with those of its parent.
class GroupsScope {
 public:
  explicit GroupsScope(const std::vector<gid_t>& groups) : chosen_(!groups.empty()) {
    if (!chosen_) return;
    own_.resize(static_cast<size_t>(getgroups(0, nullptr)));
    if (getgroups(static_cast<int>(own_.size()), own_.data()) < 0 || setgroups(groups.size(), groups.data()) != 0)
      throw std::runtime_error("cannot choose supplementary groups");
  }
  GroupsScope(const GroupsScope&) = delete;
  GroupsScope& operator=(const GroupsScope&) = delete;
  ~GroupsScope() {
    if (chosen_) setgroups(own_.size(), own_.data());
  }

 private:
  bool chosen_;
  std::vector<gid_t> own_;
};

}  // namespace

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 12000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

Program::Program(std::vector<std::string> words, const StartPlace& place)
    : out_(scratch_file("out")), err_(scratch_file("err")) {
  words.insert(words.begin(), std::string(HEADROOM_BUILD_DIR) + "/bin/headroom");
  if (!place.cgroup.empty()) {
    const std::string procs = (place.cgroup / "cgroup.procs").string();
    if (place.own_cgroup_namespace) words.insert(words.begin(), {"unshare", "-C", "--"});
    words.insert(words.begin(), {"/bin/sh", "-c", "echo $$ >\"$0\" && exec \"$@\"", procs});
  }
  auto environment = environment_of(place);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (!place.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, place.folder.c_str());
  const GroupsScope groups(place.groups);
  const int failed =
      posix_spawn(&id_, words.front().c_str(), &actions, nullptr, pointers(words).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot start " + words.front());
}

Program::~Program() {
  if (!ended()) {
    kill(id_, SIGKILL);
    wait4(id_, &status_, 0, nullptr);
  }
  for (const auto& file : {out_, err_}) {
    std::error_code ignored;
    fs::remove(file, ignored);
  }
}

bool Program::ended() {
  if (waited_) return true;
  rusage usage{};
  if (wait4(id_, &status_, WNOHANG, &usage) != id_) return false;
  peak_resident_bytes_ = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  return waited_ = true;
}

pid_t Program::trainer() const {
  pid_t child = -1;
  const std::string list = "/proc/" + std::to_string(id_) + "/task/" + std::to_string(id_) + "/children";
  eventually([&] {
    std::ifstream children(list);
    if (!children) return true;
    pid_t first = -1;
    if (!(children >> first) || !does_work(first)) return false;
    child = first;
    return true;
  });
  return child;
}

void Program::signal(int number) const { kill(id_, number); }

Finished Program::wait() {
  for (int minute = 0; minute < 5 && !eventually([&] { return ended(); }); ++minute) {
  }
  if (!ended()) {
    kill(id_, SIGKILL);
    wait4(id_, &status_, 0, nullptr);
    waited_ = true;
  }
  Finished finished{.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_),
                    .out = take_text(out_),
                    .err = take_text(err_)};
  finished.peak_resident_bytes = peak_resident_bytes_;
  return finished;
}

Finished headroom_program(std::vector<std::string> words, const StartPlace& place) {
  return Program(std::move(words), place).wait();
}

}  // namespace headroom
