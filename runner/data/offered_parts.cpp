#include "data/offered_parts.hpp"

#include <utility>

#include "arrays/pause.hpp"

namespace headroom {

bool OfferedParts::are_left() const {
  for (const Work* work = first_; work != nullptr; work = work->next) {
    if (work->begun < work->parts) return true;
  }
  return false;
}

void OfferedParts::help(std::unique_lock<std::mutex>& lock) {
  for (Work* work = first_; work != nullptr;) {
    if (work->begun == work->parts) {
      work = work->next;
      continue;
    }
    take_part(*work, lock);
    work = first_;  // others have come and gone meanwhile
  }
}

void OfferedParts::offer(Work& work) {
  const std::lock_guard lock(mutex_);
  work.next = std::exchange(first_, &work);
}

void OfferedParts::finish(Work& work) {
  std::unique_lock lock(mutex_);
  while (work.begun < work.parts) take_part(work, lock);
  if (work.running > 0) {
    lock.unlock();
    const Pause pause(PauseFor::another_thread);
    lock.lock();
    ended_.wait(lock, [&] { return work.running == 0; });
    lock.unlock();  // the end of a pause takes it
  }
  if (!lock.owns_lock()) lock.lock();
  withdraw(work);
  lock.unlock();
  if (work.error != nullptr) std::rethrow_exception(work.error);
}

void OfferedParts::take_part(Work& work, std::unique_lock<std::mutex>& lock) {
  const size_t part = work.begun++;
  ++work.running;
  lock.unlock();
  std::exception_ptr error;
  try {
    work.part(part);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error != nullptr) {
    if (work.error == nullptr) work.error = std::move(error);
    work.begun = work.parts;
  }
  if (--work.running == 0 && work.begun == work.parts) ended_.notify_all();
}

void OfferedParts::withdraw(Work& work) {
  Work** at = &first_;
  while (*at != &work) at = &(*at)->next;
  *at = work.next;
}

}  // namespace headroom
