// Tests with a folder of their own and a stand-in for the trainer in it.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace headroom {

class WithFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "headroom-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  // The process that wrote its id into a file of this name; 0 after half a minute.
  pid_t id_in(const std::string& name) const {
    for (int i = 0; i < 30000; ++i) {
      pid_t pid = 0;
      if (std::ifstream(folder_ / name) >> pid && pid > 0) return pid;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return 0;
  }

  // Sends `signal` to that process, or to `to`, once it is there. From a process of its own: a supervisor wants the
  // signals of its process for itself, which a second thread would take from it.
  pid_t send_when_there(const std::string& name, int signal, pid_t to = 0) const {
    const pid_t sender = fork();
    if (sender != 0) return sender;
    const pid_t pid = id_in(name);
    if (pid > 0) kill(to == 0 ? pid : to, signal);
    _exit(0);
  }

  std::filesystem::path folder_;
};

}  // namespace headroom
