#include "arrays/read_hooks.hpp"

namespace headroom {

Pause::Pause(PauseFor what) : listener_(ListenToPauses::current()), what_(what) {
  if (listener_ != nullptr) listener_->begin_pause(what_);
}

Pause::~Pause() {
  if (listener_ != nullptr) listener_->end_pause(what_);
}

bool Pause::is_listened_to() { return ListenToPauses::current() != nullptr; }

void in_parts(size_t parts, const Part& part) {
  if (WorkSharer* const sharer = ShareWork::current()) return sharer->run(parts, part);
  for (size_t i = 0; i < parts; ++i) part(i);
}

bool work_is_shared() { return ShareWork::current() != nullptr; }

}  // namespace headroom
