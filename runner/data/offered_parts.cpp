#include "data/offered_parts.hpp"

#include <utility>

#include "arrays/read_hooks.hpp"

namespace headroom {

void OfferedParts::run(size_t parts, const Part& part) {
  Work work{.parts = parts, .part = part};
  {
    const MutexLock lock(mutex_);
    work.next = std::exchange(first_, &work);
  }
  wake_another_();
  finish(work);
}

bool OfferedParts::help() {
  MutexLock lock(mutex_);
  Work* work = with_parts_left();
  if (work == nullptr) return false;
  // Each helper wakes the next one, without the mutex: so they come one by one, as long as parts are left.
  lock.unlock();
  wake_another_();
  lock.lock();
  while ((work = with_parts_left()) != nullptr) take_part(*work);
  return true;
}

OfferedParts::Work* OfferedParts::with_parts_left() {
  Work* work = first_;
  while (work != nullptr && work->begun == work->parts) work = work->next;
  return work;
}

// Releases the mutex while the part runs.
void OfferedParts::take_part(Work& work) {
  const size_t part = work.begun++;
  ++work.running;
  mutex_.unlock();
  std::exception_ptr error;
  try {
    work.part(part);
  } catch (...) {
    error = std::current_exception();
  }
  mutex_.lock();
  if (error != nullptr) {
    if (work.error == nullptr) work.error = std::move(error);
    work.begun = work.parts;
  }
  if (--work.running == 0 && work.begun == work.parts) ended_.notify_all();
}

// The pause begins and ends without the mutex: its end may wait for a turn, which a thread in help() may have.
void OfferedParts::finish(Work& work) {
  MutexLock lock(mutex_);
  while (work.begun < work.parts) take_part(work);
  if (work.running > 0) {
    lock.unlock();
    const Pause pause(PauseFor::another_thread);
    lock.lock();
    while (work.running > 0) ended_.wait(mutex_);
    lock.unlock();
  } else {
    lock.unlock();
  }
  lock.lock();
  // No thread is in one of its parts, and none can begin one.
  withdraw(work);
  lock.unlock();
  if (work.error != nullptr) std::rethrow_exception(work.error);
}

void OfferedParts::withdraw(Work& work) {
  Work** at = &first_;
  while (*at != &work) at = &(*at)->next;
  *at = work.next;
}

}  // namespace headroom
