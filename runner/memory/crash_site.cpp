#include "memory/crash_site.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <ucontext.h>
#include <unistd.h>
#include <utility>

#include "error.hpp"
#include "memory/steady_ns.hpp"

namespace headroom {

namespace {

thread_local const PluginCall* innermost = nullptr;
thread_local std::span<char> kept;
std::atomic<uint64_t> change_count{0};
std::atomic<PluginCall::Listener> listening{nullptr};

// Somebody else may read it when this process is gone: it is "" until the whole of it is there.
void keep(const PluginCall* call) {
  if (kept.empty()) return;
  kept[0] = '\0';
  std::atomic_signal_fence(std::memory_order_seq_cst);
  PluginCall::write(call, kept);
}

}  // namespace

PluginCall::PluginCall(std::string_view plugin, std::string_view entry)
    : plugin_(plugin),
      entry_(entry),
      outer_(innermost),
      began_ns_(listening.load(std::memory_order_relaxed) != nullptr ? steady_ns() : 0) {
  innermost = this;
  change_count.fetch_add(1, std::memory_order_relaxed);
  keep(this);
}

PluginCall::~PluginCall() {
  innermost = outer_;
  change_count.fetch_add(1, std::memory_order_relaxed);
  keep(outer_);
  if (began_ns_ == 0) return;
  if (const Listener listener = listening.load(std::memory_order_relaxed))
    listener(plugin_, entry_, began_ns_, steady_ns());
}

void PluginCall::tell(Listener listener) { listening.store(listener, std::memory_order_relaxed); }

uint64_t PluginCall::changes() { return change_count.load(std::memory_order_relaxed); }

const PluginCall* PluginCall::current() { return innermost; }

void PluginCall::write(const PluginCall* call, std::span<char> text) {
  if (text.empty()) return;
  size_t length = 0;
  char first = '\0';
  const auto append = [&](std::string_view words) {
    for (const char letter : words) {
      if (length + 1 >= text.size()) return;
      if (length == 0) {
        first = letter;  // last, so that a torn text is none
      } else {
        text[length] = letter;
      }
      ++length;
    }
  };
  if (call != nullptr) {
    append(call->plugin_);
    append(" ");
    append(call->entry_);
  }
  if (length < text.size()) text[length] = '\0';
  // For the compiler alone: a signal may come between any two instructions, and what is written by then counts.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  text[0] = first;
}

void PluginCall::keep_in(std::span<char> note) {
  keep(nullptr);
  kept = note;
  keep(innermost);
}

namespace {

// All below runs inside a signal handler: no allocation, no lock, no stdio.
std::span<char> note, call_note;

struct Site {
  uintptr_t instruction = 0;
  uintptr_t caller = 0;  // where a function that keeps no frame returns to
};

Site site_of(const ucontext_t& context) {
#if defined(__x86_64__)
  const auto stack = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
  uintptr_t caller = 0;
  // The stack may be what is broken; the kernel says so instead of crashing again.
  std::array<int, 2> ends{};
  if (pipe(ends.data()) == 0) {
    if (write(ends[1], reinterpret_cast<const void*>(stack), sizeof caller) == sizeof caller &&
        read(ends[0], &caller, sizeof caller) != sizeof caller) {
      caller = 0;
    }
    close(ends[0]);
    close(ends[1]);
  }
  return {static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RIP]), caller};
#elif defined(__aarch64__)
  // x30 is the link register.
  return {context.uc_mcontext.pc, context.uc_mcontext.regs[30]};
#else
  static_cast<void>(context);
  return {};
#endif
}

bool parse_hex(std::string_view& text, uintptr_t& number) {
  size_t digits = 0;
  for (number = 0; digits < text.size(); ++digits) {
    const char c = text[digits];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) break;
    number = number * 16 + static_cast<uintptr_t>(digit);
  }
  text.remove_prefix(digits);
  return digits > 0;
}

// "7f00-7f10 r-xp 00000000 fe:01 123   /usr/lib/libm.so.6"
bool covers(std::string_view line, uintptr_t address) {
  uintptr_t begin = 0, end = 0;
  if (!parse_hex(line, begin) || line.empty()) return false;
  line.remove_prefix(1);
  return parse_hex(line, end) && begin <= address && address < end;
}

size_t append(std::string_view words, std::span<char> text, size_t length) {
  const size_t size = std::min(words.size(), text.size() - 1 - length);
  std::memcpy(text.data() + length, words.data(), size);
  return length + size;
}

// The path of the mapping that holds `address`, appended to `text` at `length`. Returns the new length.
size_t append_file_of(uintptr_t address, std::span<char> text, size_t length) {
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return length;
  std::array<char, 1024> line;
  std::array<char, 512> block;
  size_t filled = 0;
  std::string_view path;
  for (ssize_t got; path.empty() && (got = read(maps, block.data(), block.size())) > 0;) {
    for (const char c : std::string_view(block.data(), static_cast<size_t>(got))) {
      if (c != '\n') {
        if (filled < line.size()) line[filled++] = c;
        continue;
      }
      // A view into `line`, which is not written to once the path is found. A longer line is cut, and its path too.
      const std::string_view whole(line.data(), std::exchange(filled, 0));
      if (!covers(whole, address)) continue;
      path = whole.substr(std::min(whole.find('/'), whole.size()));
      break;
    }
  }
  close(maps);
  return append(path, text, length);
}

void on_crash(int signal, siginfo_t* info, void* context) {
  const Site site = site_of(*static_cast<const ucontext_t*>(context));
  const bool was_sent = info->si_code <= 0;  // by kill(): the code that ran has nothing to do with it
  if (!was_sent && !note.empty()) {
    size_t length = append_file_of(site.instruction, note, 0);
    // The C library mostly crashes for its caller, in memcpy() with a wrong pointer, say.
    const bool is_libc = std::string_view(note.data(), length).find("/libc.so") != std::string_view::npos;
    if (is_libc && site.caller != 0) {
      const size_t before = append(", called from ", note, length);
      const size_t after = append_file_of(site.caller, note, before);
      length = after == before ? length : after;
    }
    note[length] = '\0';
    if (PluginCall::current() != nullptr) PluginCall::write(PluginCall::current(), call_note);
  }
  // The handler is gone already; the instruction runs again and the kernel ends the process, with a core of the place.
  if (was_sent) raise(signal);
}

}  // namespace

namespace {

// Runs inside exit(), on the thread that called it. Other threads may still work, so what was made before is not torn
// down.
void refuse_exit() {
  if (PluginCall::current() == nullptr) return;
  std::array<char, 120> call{};
  std::array<char, 320> sentence{};
  PluginCall::write(PluginCall::current(), call);
  // The call is cut to 119 letters, so that the sentence always fits.
  const int length = std::snprintf(sentence.data(), sentence.size(),
                                   "[plugin] %s: the plugin called exit() there, which ends the whole run; a plugin "
                                   "returns an error, in C++ it throws sdk::Error\n",
                                   call.data());
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, sentence.data(), static_cast<size_t>(length));
  _exit(static_cast<int>(Exit::plugin));
}

}  // namespace

void refuse_exit_of_plugins() { std::atexit(refuse_exit); }

void handle_crashes() {
  static bool handled = false;
  if (std::exchange(handled, true)) return;
  // It serves this thread alone: sigaltstack(2) is per thread.
  static std::array<char, 16384> stack;  // a stack that overflowed cannot run a handler
  stack_t own{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  sigaltstack(&own, nullptr);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    struct sigaction before {
    }, action{};
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
    sigaction(signal, &action, nullptr);
  }
}

CrashNotes::CrashNotes(std::span<char> crash_note, std::span<char> call) {
  note = crash_note;
  call_note = call;
  PluginCall::keep_in(call);
  handle_crashes();
}

CrashNotes::~CrashNotes() {
  PluginCall::keep_in({});
  note = call_note = {};
}

}  // namespace headroom
