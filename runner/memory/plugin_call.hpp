// Which function of which plugin a thread is in: post-mortems name it.
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

}  // namespace headroom
