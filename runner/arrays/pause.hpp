// Where a thread that fills a batch stops computing: it waits for the disk, or for another thread. Whoever made it read
// may put another thread to work meanwhile.
#pragma once

#include <cstdint>

#include "arrays/for_this_thread.hpp"

namespace headroom {

enum class PauseFor : uint8_t { disk, another_thread };

// What a thread does around its pauses. Neither member throws.
class PauseListener {
 public:
  virtual ~PauseListener() = default;
  virtual void begin_pause(PauseFor what) = 0;
  virtual void end_pause(PauseFor what) = 0;
};

// Whom the pauses of this thread are told to.
using ListenToPauses = ForThisThread<PauseListener>;

// One pause, begun and ended with the scope. Its end may wait for a turn to compute: hold no lock that a computing
// thread takes.
class Pause {
 public:
  explicit Pause(PauseFor what);
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  static bool is_listened_to();  // of this thread

 private:
  PauseListener* listener_;
  PauseFor what_;
};

}  // namespace headroom
