#include "memory/child_watch.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "memory/budget.hpp"
#include "memory/child_process.hpp"
#include "memory/limits.hpp"
#include "memory/monitor.hpp"
#include "memory/process_memory.hpp"

namespace headroom {
namespace {

constexpr int64_t mib = 1 << 20, child_bytes = 64 * mib;

// A child that has written 64 MiB and waits. It looks like one made with vfork(), so only a second look counts it.
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
  pid_t id() const { return id_; }
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

void look_twice(ChildWatch& watch) {
  watch.look();
  watch.look();
}

int64_t workers() { return read_ledger().live(Owner::workers); }

TEST(ChildWatch, CountsChildrenAsThisProcess) {
  const int64_t room_before = read_rooms().held_bytes;
  ChildWatch watch;
  watch.look();
  EXPECT_EQ(children_bytes(), 0);
  Child child;
  look_twice(watch);
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
    look_twice(watch);
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
  monitor.look_now();
  EXPECT_GE(children_bytes(), child_bytes);
}

TEST(ChildWatch, WhatAHelperLeavesBehindIsNoWorker) {
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe2(ready.data(), O_CLOEXEC), 0);
  const pid_t helper =
      start_child({"/bin/sh", "-c", "sleep 60 & echo; wait"}, {.stdout_file = ready[1], .apart = true});
  const pid_t other = start_child({"sleep", "60"}, {.search_path = true, .apart = true});
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  ChildWatch watch;
  look_twice(watch);
  EXPECT_EQ(children_bytes(), 0);
  kill(helper, SIGKILL);
  wait_for(helper);
  watch.look();
  EXPECT_EQ(children_bytes(), 0);
  kill(-helper, SIGKILL);
  kill(other, SIGKILL);
  wait_for(other);
}

TEST(ChildWatch, AChildThatHasItsParentsMemoryDoesNotCountTwice) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer makes a fork() of vfork()";
#endif
  std::array<int, 2> ready{}, go{};
  ASSERT_EQ(pipe(ready.data()), 0);
  ASSERT_EQ(pipe(go.data()), 0);
  // The thread stands still until the child ends, as in posix_spawn() until the program begins.
  std::thread parent([&] {
    const pid_t child = vfork();
    if (child == 0) {
      char byte = 0;
      (void)!write(ready[1], "x", 1);
      (void)!read(go[0], &byte, 1);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  });
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  ChildWatch watch;
  watch.look();
  EXPECT_EQ(children_bytes(), 0);
  EXPECT_EQ(watch.largest_bytes(), 0);
  EXPECT_EQ(write(go[1], "x", 1), 1);
  parent.join();
  for (const int file : {ready[0], ready[1], go[0], go[1]}) close(file);
}

TEST(ChildWatch, WhatThisProcessAloneHoldsAboveTheLimitEndsNoChild) {
  const std::vector<char> held(child_bytes, 1);
  const Child child;
  Monitor monitor(own_held_bytes() - child_bytes / 2, std::chrono::milliseconds(5));
  monitor.count_children();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(waitpid(child.id(), nullptr, WNOHANG), 0) << "it runs";
  EXPECT_GE(children_bytes(), child_bytes);
}

TEST(ChildWatch, EndsOneAtATime) {
  std::array<Child, 2> children;
  ChildWatch watch;
  look_twice(watch);
  const int64_t of_both = children_bytes();
  const auto ended = watch.end_largest();
  ASSERT_TRUE(ended);
  EXPECT_FALSE(watch.end_largest()) << "the first one's memory comes back";
  Child& gone = children[ended->pid == children[0].id() ? 0 : 1];
  EXPECT_EQ(WTERMSIG(gone.wait()), SIGKILL);
  watch.look();
  EXPECT_GE(children_bytes(), child_bytes);
  EXPECT_LT(children_bytes(), of_both - child_bytes / 2);
  EXPECT_TRUE(watch.end_largest());
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
