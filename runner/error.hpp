// The exception that ends a run, and the exit codes that users see. Used by every folder of runner/.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace headroom {

// docs/errors.md lists when each is used.
enum class Exit : int {
  ok = 0,
  bad_input = 2,
  plugin = 3,
  data = 4,
  does_not_fit = 5,
  cannot_write = 6,
  diverged = 7,
  bug = 70,
  resumable = 75,     // stopped by SIGTERM or SIGUSR1, checkpoint saved
  interrupted = 130,  // SIGINT, checkpoint saved
  killed = 137,       // the trainer was SIGKILLed
};

// A problem that ends the run. what() is "[component] sentence": what was found, what is allowed, what to do.
class Error : public std::runtime_error {
 public:
  Error(Exit code, std::string_view component, std::string_view sentence)
      : std::runtime_error("[" + std::string(component) + "] " + std::string(sentence)),
        exit_(code),
        component_size_(component.size()) {}
  Exit exit_code() const { return exit_; }
  std::string_view component() const { return std::string_view(what()).substr(1, component_size_); }
  std::string_view sentence() const { return std::string_view(what()).substr(component_size_ + 3); }

 private:
  Exit exit_;
  size_t component_size_;
};

}  // namespace headroom
