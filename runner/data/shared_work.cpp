#include "data/shared_work.hpp"

#include <utility>

namespace headroom {

namespace {

thread_local WorkSharer* current_sharer = nullptr;

}  // namespace

ShareWork::ShareWork(WorkSharer& sharer) : outer_(std::exchange(current_sharer, &sharer)) {}

ShareWork::~ShareWork() { current_sharer = outer_; }

void in_parts(size_t parts, const Part& part) {
  if (current_sharer != nullptr) return current_sharer->run(parts, part);
  for (size_t i = 0; i < parts; ++i) part(i);
}

bool work_is_shared() { return current_sharer != nullptr; }

}  // namespace headroom
