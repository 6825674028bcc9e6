#include "arrays/shared_work.hpp"

namespace headroom {

void in_parts(size_t parts, const Part& part) {
  if (WorkSharer* const sharer = ShareWork::current()) return sharer->run(parts, part);
  for (size_t i = 0; i < parts; ++i) part(i);
}

bool work_is_shared() { return ShareWork::current() != nullptr; }

}  // namespace headroom
