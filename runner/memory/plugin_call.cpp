#include "memory/plugin_call.hpp"

#include <atomic>

namespace headroom {

namespace {

thread_local const PluginCall* innermost = nullptr;
thread_local std::span<char> kept;

// Somebody else may read it when this process is gone: it is "" until the whole of it is there.
void keep(const PluginCall* call) {
  if (kept.empty()) return;
  kept[0] = '\0';
  std::atomic_signal_fence(std::memory_order_seq_cst);
  PluginCall::write(call, kept);
}

}  // namespace

PluginCall::PluginCall(std::string_view plugin, std::string_view entry)
    : plugin_(plugin), entry_(entry), outer_(innermost) {
  innermost = this;
  keep(this);
}

PluginCall::~PluginCall() {
  innermost = outer_;
  keep(outer_);
}

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
  std::atomic_signal_fence(std::memory_order_seq_cst);
  text[0] = first;
}

void PluginCall::keep_in(std::span<char> note) {
  keep(nullptr);
  kept = note;
  keep(innermost);
}

}  // namespace headroom
