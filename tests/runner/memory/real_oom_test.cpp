// The kernel's own OOM killer, in cgroups made for the test: told from a plain kill, for a trainer, for a watched
// command and for a child of one.
#include <sys/mman.h>

#include "memory/cgroups.hpp"
#include "memory/supervisor.hpp"
#include "memory/watch.hpp"
#include "stand_in/stand_in.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr int64_t mib = 1 << 20, limit_bytes = 96 * mib;

class RealOomTest : public WithFolder {
 protected:
  void SetUp() override {
    WithFolder::SetUp();
    const auto folders = memory_cgroups();
    if (folders.empty()) GTEST_SKIP() << "no memory cgroup is mounted here";
    const fs::path parent = folders.front().folder;
    cgroup_ = parent / ("headroom-oom-" + std::to_string(getpid()));
    std::error_code error;
    if (!fs::create_directory(cgroup_, error))
      GTEST_SKIP() << "no cgroup can be made in " << parent << ": " << error.message();
    const bool v1 = fs::exists(parent / "memory.limit_in_bytes");
    if (!write(cgroup_ / (v1 ? "memory.limit_in_bytes" : "memory.max"), std::to_string(limit_bytes)))
      GTEST_SKIP() << "no memory limit can be set in " << cgroup_;
    write(cgroup_ / "memory.swap.max", "0");
  }
  void TearDown() override {
    if (!cgroup_.empty()) rmdir(cgroup_.c_str());
    WithFolder::TearDown();
  }
  static bool write(const fs::path& path, const std::string& text) {
    std::ofstream stream(path);
    stream << text << std::flush;
    return stream.good();
  }
  std::string procs() const { return (cgroup_ / "cgroup.procs").string(); }

  // A shell's words: goes into the cgroup, then eats.
  std::string eater() const {
    return "sh -c 'echo $$ > " + procs() + " && exec " + HEADROOM_STAND_IN + " " + folder_.string() + " eat'";
  }
  WatchReport shell(const std::string& script) const { return watch({"sh", "-c", script}, {.interval_seconds = 0.02}); }
  void expect_oom_kill(const std::optional<OomKill>& kill) const {
    ASSERT_TRUE(kill) << "taken for a plain kill";
    EXPECT_TRUE(kill->certain) << kill->evidence;
    EXPECT_EQ(kill->cgroup, cgroup_);
    EXPECT_EQ(kill->limit_bytes, limit_bytes);
  }

  fs::path cgroup_;
};

// A supervisor and its trainer share a cgroup, as under a batch system: the trainer goes, the supervisor tells.
TEST_F(RealOomTest, OfTheTrainerIsToldFromAPlainKill) {
  struct Told {
    int exit_code = -1;
    bool oom_kill = false, certain = false;
    int64_t limit_bytes = 0;
  };
  for (const bool out_of_memory : {true, false}) {
    fs::remove(folder_ / "ready");
    const pid_t killer = out_of_memory ? 0 : send_when_there("ready", SIGKILL);
    auto* told =
        static_cast<Told*>(mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const pid_t supervisor = fork();
    if (supervisor == 0) {
      if (!write(procs(), std::to_string(getpid()))) _exit(1);
      const Ended ended = supervise(HEADROOM_STAND_IN, {folder_.string(), out_of_memory ? "eat" : "wait"});
      *told = {ended.exit_code(), ended.oom_kill.has_value(), ended.oom_kill && ended.oom_kill->certain,
               ended.oom_kill ? ended.oom_kill->limit_bytes : 0};
      _exit(0);
    }
    int status = 0;
    waitpid(supervisor, &status, 0);
    if (killer > 0) waitpid(killer, nullptr, 0);
    ASSERT_EQ(status, 0) << "the supervisor did not live to tell";
    EXPECT_EQ(told->exit_code, 137);
    EXPECT_EQ(told->oom_kill, out_of_memory);
    EXPECT_EQ(told->certain, out_of_memory);
    EXPECT_EQ(told->limit_bytes, out_of_memory ? limit_bytes : 0);
    munmap(told, sizeof(Told));
  }
}

TEST_F(RealOomTest, OfTheWatchedCommand) {
  const WatchReport report = watch({"sh", "-c", "exec " + eater()}, {.interval_seconds = 0.02});
  EXPECT_EQ(report.end->exit_code(), 137);
  const WatchedDeath* death = report.main_death();
  ASSERT_NE(death, nullptr);
  EXPECT_TRUE(death->is_command);
  expect_oom_kill(death->oom_kill);
}

TEST_F(RealOomTest, OfAChildOfTheWatchedCommand) {
  const WatchReport report = shell(eater() + " & echo $! > " + (folder_ / "child").string() + "; wait $!; exit 5");
  EXPECT_EQ(report.end->exit_code(), 5);
  const WatchedDeath* death = report.main_death();
  ASSERT_NE(death, nullptr);
  EXPECT_EQ(death->process.pid, id_in("child"));
  EXPECT_FALSE(death->is_command);
  expect_oom_kill(death->oom_kill);
}

TEST_F(RealOomTest, OneChildOutOfMemoryAndOneKilledByHandAreToldApart) {
  const std::string folder = folder_.string();
  const WatchReport report =
      shell("sh -c 'echo $$ > " + procs() + " && exec sleep 1000' & echo $! > " + folder + "/by_hand; " + eater() +
            " & echo $! > " + folder + "/eater; wait $!; kill -9 $(cat " + folder + "/by_hand); wait; exit 0");
  EXPECT_EQ(report.end->exit_code(), 0);
  ASSERT_EQ(report.deaths.size(), 2u);
  const bool eater_first = report.deaths[0].process.pid == id_in("eater");
  const WatchedDeath& eater = report.deaths[eater_first ? 0 : 1];
  const WatchedDeath& by_hand = report.deaths[eater_first ? 1 : 0];
  EXPECT_EQ(eater.process.pid, id_in("eater"));
  EXPECT_EQ(by_hand.process.pid, id_in("by_hand"));
  expect_oom_kill(eater.oom_kill);
  EXPECT_FALSE(by_hand.oom_kill);
}

TEST_F(RealOomTest, FilesInMemoryBesideTheWatchedAreTold) {
  if (!fs::is_directory("/dev/shm")) GTEST_SKIP() << "no tmpfs at /dev/shm";
  const std::string file = "/dev/shm/headroom-oom-" + std::to_string(getpid());
  const WatchReport report = shell("sh -c 'echo $$ > " + procs() + " && head -c 50331648 /dev/zero > " + file +
                                   "'; sleep 0.2; exec " + eater());
  fs::remove(file);
  const WatchedDeath* death = report.main_death();
  ASSERT_NE(death, nullptr);
  expect_oom_kill(death->oom_kill);
  EXPECT_NEAR(static_cast<double>(death->around.last.files_bytes), 48.0 * mib, 2.0 * mib);
  EXPECT_LT(death->together_bytes, 50 * mib);
}

TEST_F(RealOomTest, OtherProcessesBesideTheWatchedAreTold) {
  const pid_t parent = fork();
  if (parent == 0) {
    if (fork() > 0) _exit(0);  // an orphan is nobody's child here, and so not of the watched
    write(procs(), std::to_string(getpid()));
    mmap(nullptr, 40 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    std::ofstream(folder_ / "held") << getpid();
    for (;;) pause();
  }
  waitpid(parent, nullptr, 0);
  const pid_t neighbour = id_in("held");
  const WatchReport report = watch({"sh", "-c", "exec " + eater()}, {.interval_seconds = 0.005});
  kill(neighbour, SIGKILL);
  while (kill(neighbour, 0) == 0) usleep(1000);
  const WatchedDeath* death = report.main_death();
  ASSERT_NE(death, nullptr);
  expect_oom_kill(death->oom_kill);
  EXPECT_GE(death->around.last.others_bytes, 38 * mib);
  EXPECT_LT(death->around.last.others_bytes, 60 * mib);
}

// The counters alone, as for users who may not read the kernel's log.
TEST_F(RealOomTest, CountersSayItWithoutTheLog) {
  OomKills kills("/", /*with_log=*/false);
  for (const bool out_of_memory : {true, false, true}) {
    for (const char* file : {"ready", "moved", "go"}) fs::remove(folder_ / file);
    const pid_t child = fork();
    if (child == 0) {
      write(procs(), std::to_string(getpid()));
      std::ofstream(folder_ / "moved") << getpid();
      if (id_in("go") != getpid()) _exit(1);
      execl(HEADROOM_STAND_IN, HEADROOM_STAND_IN, folder_.c_str(), out_of_memory ? "eat" : "wait", nullptr);
      _exit(1);
    }
    ASSERT_EQ(id_in("moved"), child);
    const auto place = kills.place_of(child);
    std::ofstream(folder_ / "go") << child;
    if (!out_of_memory && id_in("ready") == child) kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const auto kill_seen = kills.claim(child, place);
    if (out_of_memory) {
      expect_oom_kill(kill_seen);
    } else {
      EXPECT_FALSE(kill_seen);
    }
  }
}

}  // namespace
}  // namespace headroom
