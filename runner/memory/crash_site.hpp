// Whose code a crash was in: which function of which plugin a thread is in, and a handler that finds the file that the
// instruction belongs to. Both are left in the black box; then the process dies of the signal as it would have.
#pragma once

#include <span>
#include <string_view>

namespace headroom {

// From here to the end of the scope this thread is in `entry` of `plugin`. Scopes nest; both names outlive theirs.
class PluginCall {
 public:
  PluginCall(std::string_view plugin, std::string_view entry);
  ~PluginCall();
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

  // Of this thread, nullptr: in none. Safe in a signal handler.
  static const PluginCall* current();
  // "tds_lstm step", zero-terminated and cut where `text` ends; "" for none. Safe in a signal handler.
  static void write(const PluginCall* call, std::span<char> text);
  // This thread keeps the call it is in in `note` from here on; empty: no longer.
  static void keep_in(std::span<char> note);

 private:
  std::string_view plugin_, entry_;
  const PluginCall* outer_;
};

// [control] Handles SIGSEGV, SIGBUS, SIGFPE and SIGILL from the first call on, where nobody else does: nothing is noted
// without CrashNotes. Call it before a handler that passes on what is not its own.
void handle_crashes();

// [control] For these signals as long as it lives. `note` receives the file, "/usr/lib/libm.so.6", for code of the C
// library with who called it; `call` the plugin's function that the thread was in, and as long as
// nobody crashes that of the thread that made this. One at a time.
class CrashNotes {
 public:
  CrashNotes(std::span<char> note, std::span<char> call);
  ~CrashNotes();
  CrashNotes(const CrashNotes&) = delete;
  CrashNotes& operator=(const CrashNotes&) = delete;
};

}  // namespace headroom
