#include "memory/child_watch.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "memory/budget.hpp"
#include "memory/child_process.hpp"
#include "memory/limits.hpp"
#include "memory/monitor.hpp"
#include "memory/process_memory.hpp"

namespace headroom {
namespace {

constexpr int64_t mib = 1 << 20, child_bytes = 64 * mib;

// A child that has written 64 MiB and waits.
class Child {
 public:
  Child() {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    id_ = fork();
    if (id_ == 0) {
      void* const memory = mmap(nullptr, child_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      std::memset(memory, 1, child_bytes);
      (void)!write(ready[1], "x", 1);
      for (;;) pause();
    }
    close(ready[1]);
    char byte = 0;
    (void)!read(ready[0], &byte, 1);  // it may be ended before
    close(ready[0]);
  }
  ~Child() {
    if (!reaped_) end();
  }
  void end() {
    kill(id_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    waitpid(id_, &status, 0);
    reaped_ = true;
    return status;
  }

 private:
  pid_t id_ = -1;
  bool reaped_ = false;
};

int64_t workers() { return read_ledger().live(Owner::workers); }

TEST(ChildWatch, CountsChildrenAsThisProcess) {
  const int64_t room_before = read_rooms().held_bytes;
  ChildWatch watch;
  watch.look();
  EXPECT_EQ(children_bytes(), 0);
  Child child;
  watch.look();
  EXPECT_GE(children_bytes(), child_bytes);
  EXPECT_GE(watch.largest_bytes(), child_bytes);
  EXPECT_EQ(workers(), children_bytes());
  EXPECT_GE(held_bytes(), own_held_bytes() + child_bytes);
  EXPECT_GE(read_rooms().held_bytes, room_before + child_bytes / 2) << "and so they are no others";
  child.end();
  watch.look();
  EXPECT_EQ(children_bytes(), 0);
  EXPECT_EQ(workers(), 0);
  EXPECT_GE(watch.largest_bytes(), child_bytes);
}

TEST(ChildWatch, LeavesHelpersOutAndForgetsWithItsEnd) {
  const pid_t helper = start_child({"/bin/sh", "-c", "sleep 60 & wait"}, {.apart = true});
  {
    ChildWatch watch;
    watch.look();
    EXPECT_EQ(children_bytes(), 0);
    kill(-helper, SIGKILL);
    wait_for(helper);
    EXPECT_FALSE(is_helper_process(helper));
    const Child child;
    watch.look();
    EXPECT_GE(children_bytes(), child_bytes);
  }
  EXPECT_EQ(children_bytes(), 0);
  EXPECT_EQ(workers(), 0);
}

TEST(ChildWatch, AMonitorLeavesChildrenAloneUnlessItIsAsked) {
  Monitor monitor(own_held_bytes() + 4 * child_bytes, std::chrono::milliseconds(5));
  const Child child;
  monitor.look_now();
  EXPECT_EQ(children_bytes(), 0);
  monitor.count_children();
  monitor.look_now();
  EXPECT_GE(children_bytes(), child_bytes);
}

TEST(ChildWatch, AChildThatTakesTheRunAboveItsLimitIsEnded) {
  const int64_t limit = own_held_bytes() + child_bytes / 2;
  std::string told;
  {
    Monitor monitor(limit, std::chrono::milliseconds(5));
    monitor.count_children([&](const std::string& sentence) { told = sentence; });
    Child child;
    EXPECT_EQ(WTERMSIG(child.wait()), SIGKILL);
    monitor.look_now();
  }
  EXPECT_NE(told.find("above the limit of"), std::string::npos) << told;
}

}  // namespace
}  // namespace headroom
