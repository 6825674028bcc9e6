// A file descriptor that closes itself. Owned by one object: it moves and is never copied.
#pragma once

#include <unistd.h>
#include <utility>

namespace headroom {

class Descriptor {
 public:
  Descriptor() = default;                               // none
  explicit Descriptor(int number) : number_(number) {}  // below 0: none
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }

 private:
  int number_ = -1;
};

}  // namespace headroom
