#include "data/pause.hpp"

#include <utility>

namespace headroom {

namespace {

thread_local PauseListener* current = nullptr;

}  // namespace

ListenToPauses::ListenToPauses(PauseListener& listener) : outer_(std::exchange(current, &listener)) {}

ListenToPauses::~ListenToPauses() { current = outer_; }

Pause::Pause(PauseFor what) : listener_(current), what_(what) {
  if (listener_ != nullptr) listener_->begin_pause(what_);
}

Pause::~Pause() {
  if (listener_ != nullptr) listener_->end_pause(what_);
}

bool Pause::is_listened_to() { return current != nullptr; }

}  // namespace headroom
