#include "arrays/pause.hpp"

namespace headroom {

Pause::Pause(PauseFor what) : listener_(ListenToPauses::current()), what_(what) {
  if (listener_ != nullptr) listener_->begin_pause(what_);
}

Pause::~Pause() {
  if (listener_ != nullptr) listener_->end_pause(what_);
}

bool Pause::is_listened_to() { return ListenToPauses::current() != nullptr; }

}  // namespace headroom
