// Whose code a crash was in: a handler finds the file that the instruction belongs to and leaves its name in the black
// box, then the process dies of the signal as it would have.
#pragma once

#include <span>

namespace headroom {

// [control] For SIGSEGV, SIGBUS, SIGFPE and SIGILL as long as it lives, where nobody else handles them. `note` receives
// the file, "/usr/lib/libm.so.6", for code of the C library with who called it; `call` the plugin's function that the
// thread was in (plugin_call.hpp), and as long as nobody crashes that of the thread that made this. One at a time.
class CrashNotes {
 public:
  CrashNotes(std::span<char> note, std::span<char> call);
  ~CrashNotes();
  CrashNotes(const CrashNotes&) = delete;
  CrashNotes& operator=(const CrashNotes&) = delete;
};

}  // namespace headroom
