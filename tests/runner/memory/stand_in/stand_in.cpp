// Stands for the trainer in tests of its supervisor: makes a black box in the folder it is given, says that it is ready
// (the file FOLDER/ready), and ends the way it is told.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include "memory/black_box.hpp"
#include "memory/crash_site.hpp"
#include "memory/supervised.hpp"

// A sanitizer would make an exit code of a crash.
extern "C" const char* __asan_default_options() {
  return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0";
}
extern "C" const char* __tsan_default_options() {
  return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0";
}

namespace {

using namespace headroom;

constexpr int64_t mib = 1 << 20;

// Eight records in which activations grow by 64 MiB and all else stays.
void fill(BlackBox& box) {
  box.set_phase(Phase::backward);
  box.set_position(412, 3);
  box.set_micro_batch(8);
  for (int64_t i = 0; i < 8; ++i) {
    BlackBoxRecord record;
    record.live_bytes[static_cast<size_t>(Owner::activations)] = (100 + (i < 6 ? 0 : 64)) * mib;
    record.live_bytes[static_cast<size_t>(Owner::optimizer)] = 50 * mib;
    record.other_bytes = 30 * mib;
    record.held_bytes = 180 * mib + (i < 6 ? 0 : 64 * mib);
    record.limit_bytes = 300 * mib;
    record.room_bytes = record.limit_bytes - record.held_bytes;
    box.push(record);
  }
}

// Waited for instead of handled: TSan loses a signal that comes while it prepares the thread's first blocking call.
sigset_t only_sigterm() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  return set;
}

[[noreturn]] void wait_for_ever() {
  for (;;) pause();
}

[[noreturn]] void eat() {
  for (;;) {
    void* piece = std::malloc(mib);
    if (piece != nullptr) std::memset(piece, 1, mib);
  }
}

void crash_in_plugin() {
  const PluginCall call("crashing", "crash");
  void* plugin = dlopen(HEADROOM_CRASHING_PLUGIN, RTLD_NOW);
  auto* crash = reinterpret_cast<void (*)()>(dlsym(plugin, "crash"));
  crash();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::filesystem::path folder = argv[1];
  const std::string how = argv[2];
  const char* way = std::getenv("HEADROOM_SUPERVISOR_FD");
  const std::string way_to_supervisor = way != nullptr ? way : "";
  become_supervised();
  lift_start_limit();
  if (how == "early") std::abort();
  if (how == "files") {
    const std::string command = "{ env | grep HEADROOM_SUPERVISOR; [ -n '" + way_to_supervisor +
                                "' ] || echo no way; [ ! -e /proc/self/fd/" + way_to_supervisor +
                                " ] || echo open; } > " + (folder / "files").string();
    return std::system(command.c_str()) < 0 ? 1 : 0;
  }
  if (how == "score") {
    std::ofstream scores(folder / "scores");
    scores << std::ifstream("/proc/self/oom_score_adj").rdbuf();
    raise_oom_score(probe_oom_rise);
    scores << std::ifstream("/proc/self/oom_score_adj").rdbuf();
    return 0;
  }
  const sigset_t to_stop = only_sigterm();
  if (how == "stop") sigprocmask(SIG_BLOCK, &to_stop, nullptr);
  BlackBox box(folder / black_box_file);
  const CrashNotes crash_notes(box.crash_site(), box.plugin_call());
  tell_supervisor_run_folder(folder);
  fill(box);
  std::ofstream(folder / "ready") << getpid();
  if (how == "wait") wait_for_ever();
  if (how == "eat") eat();
  if (how == "abort") std::abort();
  if (how == "plugin") crash_in_plugin();
  if (how == "stop") {
    int signal = 0;
    sigwait(&to_stop, &signal);
    return 75;
  }
  return std::atoi(how.c_str());
}
