// Large reads are shared: the thread that fills a batch offers the parts of one to threads that have nothing to fill.
#pragma once

#include <cstddef>
#include <functional>

#include "arrays/for_this_thread.hpp"

namespace headroom {

using Part = std::function<void(size_t part)>;

// Runs part(0) to part(parts - 1), in any order and on several threads, and comes back when all have ended; throws what
// the first of those that failed threw, and the parts that had not begun by then are left out.
class WorkSharer {
 public:
  virtual ~WorkSharer() = default;
  virtual void run(size_t parts, const Part& part) = 0;
};

// Whom in_parts() of this thread goes to.
using ShareWork = ForThisThread<WorkSharer>;

// As WorkSharer::run(); one after the other where nobody shares. Parts ask for no parts of their own.
void in_parts(size_t parts, const Part& part);

bool work_is_shared();  // of this thread

}  // namespace headroom
