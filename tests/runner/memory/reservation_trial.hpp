// A folder of reservations for each test, and children that make them.
#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <stdlib.h>
#include <string>
#include <sys/file.h>

#include "child.hpp"
#include "fake_root.hpp"
#include "memory/reservations.hpp"

namespace headroom {

class ReservationTrial : public FakeRoot {
 protected:
  void SetUp() override {
    FakeRoot::SetUp();
    folder_ = root_ / "reservations";
    ::setenv("HEADROOM_RESERVATIONS", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("HEADROOM_RESERVATIONS");
    FakeRoot::TearDown();
  }

  // Reserves `bytes`, tells so, and holds them until it is told to end.
  static void hold(Child& self, const std::string& name, int64_t bytes) {
    const Reservation reservation = Reservation::claim(name, bytes);
    self.tell();
    self.hear();
  }
  // An entry as any program could write it, locked until the child ends.
  void write_locked(Child& self, const std::string& name, const std::string& text) const {
    const int file = ::open((folder_ / name).c_str(), O_RDWR | O_CREAT, 0644);
    ::flock(file, LOCK_EX);
    [[maybe_unused]] const ssize_t wrote = ::write(file, text.data(), text.size());
    self.tell();
    self.hear();
  }
  size_t entries() const {
    std::error_code error;
    const std::filesystem::directory_iterator list(folder_, error);
    return error ? 0 : static_cast<size_t>(std::distance(begin(list), end(list)));
  }

  std::filesystem::path folder_;
};

}  // namespace headroom
