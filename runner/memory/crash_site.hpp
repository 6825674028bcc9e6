// Whose code a crash was in: a handler finds the file that the instruction belongs to and leaves its name in the black
// box, then the process dies of the signal as it would have.
#pragma once

#include <span>

namespace headroom {

// [control] Handles SIGSEGV, SIGBUS, SIGFPE and SIGILL from the first call on, where nobody else does: nothing is noted
// without CrashNotes. Call it before a handler that passes on what is not its own.
void handle_crashes();

// [control] For these signals as long as it lives. `note` receives the file, "/usr/lib/libm.so.6", for code of the C
// library with who called it; `call` the plugin's function that the thread was in (plugin_call.hpp), and as long as
// nobody crashes that of the thread that made this. One at a time.
class CrashNotes {
 public:
  CrashNotes(std::span<char> note, std::span<char> call);
  ~CrashNotes();
  CrashNotes(const CrashNotes&) = delete;
  CrashNotes& operator=(const CrashNotes&) = delete;
};

}  // namespace headroom
