// What a thread is given for a while by whoever made it read: a listener, a sharer.
#pragma once

#include <utility>

namespace headroom {

// From here to the end of the scope current() of this thread is `it`; NULL outside of any. Nests.
template <class T>
class ForThisThread {
 public:
  explicit ForThisThread(T& it) : outer_(std::exchange(current_, &it)) {}
  ~ForThisThread() { current_ = outer_; }
  ForThisThread(const ForThisThread&) = delete;
  ForThisThread& operator=(const ForThisThread&) = delete;

  static T* current() { return current_; }

 private:
  static inline thread_local T* current_ = nullptr;
  T* outer_;
};

}  // namespace headroom
