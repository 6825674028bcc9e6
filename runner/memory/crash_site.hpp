// Finds out whose code crashed. Each thread notes which function of which plugin it is in; a signal handler looks up
// the file that the crashing instruction belongs to. Both are written to the black box; then the signal ends the
// process as it would have without the handler.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace headroom {

// Notes that this thread is in `entry` of `plugin` until the end of the scope. Scopes nest. REQUIRES: both strings live
// until then. Allocates nothing itself. [any]
class PluginCall {
 public:
  PluginCall(std::string_view plugin, std::string_view entry);
  ~PluginCall();
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

  // How many calls of all threads have begun or ended. While it does not change, no plugin makes progress. [any], a
  // load
  static uint64_t changes();
  // The innermost of this thread; nullptr: in no plugin. Safe in a signal handler.
  static const PluginCall* current();
  // Writes "tds_lstm step" ("" for nullptr), zero-terminated, cut to fit `text`. Safe in a signal handler.
  static void write(const PluginCall* call, std::span<char> text);
  // From here on this thread writes its current call to `note`, at every change; empty: to nothing.
  static void keep_in(std::span<char> note);

  // Called when a call has ended, on the thread that made it. Times are nanoseconds of std::chrono::steady_clock.
  using Listener = void (*)(std::string_view plugin, std::string_view entry, int64_t began_ns,
                            int64_t ended_ns) noexcept;
  // From here on calls of all threads are timed for `listener`; nullptr: none is, and no clock is read. A call that
  // ends during the change may still go to the earlier listener. [any]
  static void tell(Listener listener);

 private:
  std::string_view plugin_, entry_;
  const PluginCall* outer_;
  int64_t began_ns_;  // 0: there is no listener
};

// From here on a plugin that calls exit() in one of its functions ends the process with exit code 3 (Exit::plugin) and
// a sentence on stderr, whatever code it gave. Destructors of what is made after this call run before; it may be called
// again. [control]
void refuse_exit_of_plugins();

// Installs the handler for SIGSEGV, SIGBUS, SIGFPE and SIGILL where no other is installed; later calls do nothing. It
// notes nothing without CrashNotes. Call it before installing a handler that passes on signals that are not its own.
// [control]
void handle_crashes();

// While it lives, a crash is noted. `note` receives the file, "/usr/lib/libm.so.6"; for code of the C library also the
// file of its caller. `call` receives the plugin's function that the crashed thread was in, and until then the one that
// the thread which made this object is in. REQUIRES: both spans live as long. One at a time. [control]
class CrashNotes {
 public:
  CrashNotes(std::span<char> note, std::span<char> call);
  ~CrashNotes();
  CrashNotes(const CrashNotes&) = delete;
  CrashNotes& operator=(const CrashNotes&) = delete;
};

}  // namespace headroom
