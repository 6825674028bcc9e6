// A process made by fork that does what a test tells it, when it tells it.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace headroom {

class Child {
 public:
  // `body` runs in the new process, which exits with 0 after it, with 1 when it throws. Both sides speak through
  // tell() and hear() of their own copy of this object.
  explicit Child(const std::function<void(Child&)>& body) {
    std::array<int, 2> down{}, up{};
    if (::pipe2(down.data(), O_CLOEXEC) != 0 || ::pipe2(up.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    id_ = ::fork();
    if (id_ < 0) throw std::runtime_error("fork");
    const bool inside = id_ == 0;
    in_ = inside ? down[0] : up[0];
    out_ = inside ? up[1] : down[1];
    ::close(inside ? down[1] : up[1]);
    ::close(inside ? up[0] : down[0]);
    if (!inside) return;
    int code = 0;
    try {
      body(*this);
    } catch (const std::exception&) {
      code = 1;
    }
    ::_exit(code);
  }
  ~Child() {
    if (id_ > 0) kill();
    ::close(in_);
    ::close(out_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t id() const { return id_; }
  void tell(int64_t value = 0) const {
    if (::write(out_, &value, sizeof value) != sizeof value) throw std::runtime_error("the other side is gone");
  }
  int64_t hear() const {
    int64_t value = 0;
    if (::read(in_, &value, sizeof value) != sizeof value) throw std::runtime_error("the other side is gone");
    return value;
  }

  // Waits for its end: the status of waitpid().
  int wait() {
    int status = 0;
    ::waitpid(id_, &status, 0);
    id_ = -1;
    return status;
  }
  int kill() {
    ::kill(id_, SIGKILL);
    return wait();
  }

 private:
  pid_t id_ = -1;
  int in_ = -1, out_ = -1;
};

}  // namespace headroom
