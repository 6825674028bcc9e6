// What `headroom plugins check` says where the plugin neither returns nor fails: of a call that hangs, that it does; of
// one that crashes, which it was.
#pragma once

#include <array>
#include <thread>

#include "memory/supervisor.hpp"
#include "mutex.hpp"

namespace headroom {

// While it lives, a call of a plugin that does not return for `stall.after` is told, by the name that the thread which
// made this object gave it. A crash in a plugin's call, on any thread, ends the process with exit code 3 and a
// sentence; sanitizers keep their own reports. One at a time. [control]
class CheckWatch {
 public:
  explicit CheckWatch(const StallReport& stall);
  ~CheckWatch();
  CheckWatch(const CheckWatch&) = delete;
  CheckWatch& operator=(const CheckWatch&) = delete;

 private:
  void look(const StallReport& stall);

  std::array<char, 120> call_{};
  Mutex mutex_;
  Condition ends_;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace headroom
