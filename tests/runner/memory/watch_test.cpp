// Real programs under the watch: what they end with, what of them is seen, and what killed one of them.
#include "memory/watch.hpp"

#include <algorithm>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "child.hpp"
#include "memory/process_tree.hpp"
#include "memory/readable.hpp"
#include "stand_in/stand_in.hpp"

namespace headroom {
namespace {

constexpr int64_t mib = 1 << 20;

class WatchTest : public WithFolder {
 protected:
  // A shell runs `script` with $D, the test's folder.
  WatchReport shell(const std::string& script) {
    return watch({"sh", "-c", "D=" + folder_.string() + "; " + script}, {.interval_seconds = 0.02});
  }
  void go_on() { std::ofstream(folder_ / "go") << ""; }
  // The same; $D/go comes when the process that wrote its id into $D/child has been seen.
  WatchReport shell_until_child_is_seen(const std::string& script) {
    WatchOptions options{.interval_seconds = 0.02, .telling_seconds = 0.01};
    options.tell = [this](const WatchReport& report) {
      pid_t child = 0;
      if (std::ifstream(folder_ / "child") >> child && report.timeline.find(child) != nullptr) go_on();
    };
    return watch({"sh", "-c", "D=" + folder_.string() + "; " + script}, options);
  }
};

// Waits for the file $D/go.
const std::string kWait = "while [ ! -e $D/go ]; do sleep 0.01; done; ";

TEST_F(WatchTest, EndsAsTheCommandDoes) {
  for (const int code : {0, 1, 42, 137}) {
    const WatchReport report = shell("exit " + std::to_string(code));
    ASSERT_TRUE(report.end);
    EXPECT_EQ(report.end->exit_code(), code);
    EXPECT_FALSE(report.end->by_signal());
    EXPECT_TRUE(report.deaths.empty());
    EXPECT_EQ(report.main_death(), nullptr);
  }
}

TEST_F(WatchTest, ASignalIsAHundredAndTwentyEightMore) {
  for (const int signal : {SIGKILL, SIGTERM, SIGSEGV}) {
    const WatchReport report = shell("kill -" + std::to_string(signal) + " $$");
    EXPECT_EQ(report.end->exit_code(), 128 + signal);
    ASSERT_EQ(report.deaths.size(), 1u);
    EXPECT_EQ(report.deaths[0].signal, signal);
    EXPECT_TRUE(report.deaths[0].is_command);
    EXPECT_FALSE(report.deaths[0].oom_kill) << "nobody ran out of memory";
    EXPECT_EQ(report.main_death() == nullptr, signal == SIGTERM) << "SIGTERM only asks";
  }
}

TEST_F(WatchTest, WhatCannotBeStartedIsSaid) {
  EXPECT_THROW(watch({(folder_ / "absent").string()}, {}), std::system_error);
  EXPECT_THROW(watch({"surely-no-such-program"}, {}), std::system_error);
  EXPECT_THROW(watch({folder_.string()}, {}), std::system_error);
}

// Whether this kernel (since 6.15) tells how a process ended after its parent has asked.
bool late_status_is_told() {
  const pid_t child = fork();
  if (child == 0) _exit(3);
  const int file = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  waitpid(child, nullptr, 0);
  const bool told = status_of_dead(child, file).has_value();
  close(file);
  return told;
}

TEST_F(WatchTest, AKilledChildIsNamedAlthoughTheCommandEndsWell) {
  if (!late_status_is_told()) GTEST_SKIP() << "this kernel tells only a parent, or who comes before it";
  const WatchReport report =
      shell_until_child_is_seen("sleep 1000 & echo $! > $D/child; " + kWait + "kill -9 $(cat $D/child); wait; exit 0");
  EXPECT_EQ(report.end->exit_code(), 0);
  const WatchedDeath* death = report.main_death();
  ASSERT_NE(death, nullptr);
  EXPECT_EQ(death->process.pid, id_in("child"));
  EXPECT_EQ(death->signal, SIGKILL);
  EXPECT_FALSE(death->is_command);
  EXPECT_FALSE(death->oom_kill);
}

TEST_F(WatchTest, AChildWhoseParentTakesItsStatusLateIsSeenAtOnce) {
  // A zombie for as long as the shell does not ask: told from /proc where the kernel tells nothing else.
  const WatchReport report = shell_until_child_is_seen("sleep 1000 & echo $! > $D/child; " + kWait +
                                                       "kill -SEGV $(cat $D/child); sleep 0.3; exit 3");
  EXPECT_EQ(report.end->exit_code(), 3);
  ASSERT_NE(report.main_death(), nullptr);
  EXPECT_EQ(report.main_death()->process.pid, id_in("child"));
  EXPECT_EQ(report.main_death()->signal, SIGSEGV);
}

TEST_F(WatchTest, OrphansAreWatchedOn) {
  // The grandchild loses its parent, becomes ours, and is killed by a stranger.
  const pid_t killer = send_when_there("orphan", SIGKILL);
  const WatchReport report =
      shell("(sleep 1000 & echo $! > $D/orphan); while kill -0 $(cat $D/orphan) 2>/dev/null; do sleep 0.01; done");
  waitpid(killer, nullptr, 0);
  EXPECT_EQ(report.end->exit_code(), 0);
  ASSERT_NE(report.main_death(), nullptr);
  EXPECT_EQ(report.main_death()->process.pid, id_in("orphan"));
  EXPECT_EQ(report.main_death()->signal, SIGKILL);
}

TEST_F(WatchTest, WhatOutlivesTheCommandIsCounted) {
  const WatchReport report = shell("sleep 1000 & echo $! > $D/child");
  EXPECT_EQ(report.end->exit_code(), 0);
  EXPECT_EQ(report.left_running, 1);
  const pid_t left = id_in("child");
  kill(left, SIGKILL);
  waitpid(left, nullptr, 0);
}

TEST_F(WatchTest, SignalsReachTheCommand) {
  const pid_t sender = send_when_there("ready", SIGUSR2, getpid());
  const WatchReport report = shell("trap 'exit 9' USR2; echo $$ > $D/ready; while :; do sleep 0.01; done");
  waitpid(sender, nullptr, 0);
  EXPECT_EQ(report.end->exit_code(), 9);
  ASSERT_TRUE(report.last_forwarded);
  EXPECT_EQ(report.last_forwarded->signal, SIGUSR2);
}

TEST_F(WatchTest, MemoryIsSharedOutAmongProcesses) {
  // One allocates 48 MiB and forks: together they hold it once.
  const std::string python =
      "import os, time\n"
      "x = bytearray(b'x') * (48 << 20)\n"
      "child = os.fork()\n"
      "end = time.time() + 60\n"
      "while not os.path.exists('" +
      (folder_ / "go").string() + "') and time.time() < end: time.sleep(0.01)\n";
  if (std::system("python3 -c pass") != 0) GTEST_SKIP() << "no python3 here";
  int64_t together = 0, looks_with_both = 0;
  WatchOptions options{.interval_seconds = 0.02, .telling_seconds = 0.02};
  options.tell = [&](const WatchReport& report) {
    const TimelineSample& last = report.timeline.samples().back();
    std::vector<int64_t> large;
    for (const auto& [series, bytes] : last.bytes) {
      if (bytes > 20 * mib) large.push_back(bytes);
    }
    if (large.size() != 2 || large[0] > 40 * mib) return;
    together = last.total_bytes;
    if (++looks_with_both == 3) go_on();
  };
  const WatchReport report = watch({"python3", "-c", python}, options);
  EXPECT_EQ(report.end->exit_code(), 0);
  for (const ProcessSeries& series : report.timeline.series()) {
    if (series.by_rss) GTEST_SKIP() << "PSS may not be read here";
  }
  if (looks_with_both < 3) GTEST_SKIP() << "the two processes were never seen to share here";
  EXPECT_GT(together, 48 * mib);
  EXPECT_LT(together, 80 * mib);
}

TEST_F(WatchTest, ReportsWhileItRuns) {
  int told = 0;
  WatchOptions options{.interval_seconds = 0.02, .telling_seconds = 0.02};
  options.tell = [&](const WatchReport& report) {
    EXPECT_FALSE(report.end);
    EXPECT_GT(report.pid, 0);
    if (++told == 3) go_on();
  };
  const WatchReport report = watch({"sh", "-c", "D=" + folder_.string() + "; " + kWait}, options);
  EXPECT_GE(told, 3);
  EXPECT_EQ(report.end->exit_code(), 0);
  EXPECT_GT(report.bound.limit_bytes, 0);
}

// Linux lets a process call itself what it likes, and shows the name in the file that has its parent, state and memory.
TEST(ProcessTree, ANameThatLooksLikeAnotherLineIsANameOnly) {
  for (const char* name : {"State:\tZ", "PPid:\t1", "RssAnon:\t0 kB", "x\nState:\tZ"}) {
    const Child child([name](const Child& self) {
      prctl(PR_SET_NAME, name);
      self.tell();
      self.hear();
    });
    child.hear();
    ProcessTree tree(getpid());
    tree.look();
    const auto processes = tree.processes();
    const auto found = std::ranges::find(processes, child.id(), &WatchedProcess::pid);
    ASSERT_NE(found, processes.end()) << name;
    EXPECT_EQ(found->parent, getpid()) << name;
    EXPECT_GT(found->bytes, 0) << name;
    EXPECT_EQ(found->name.front(), *name);
  }
}

WatchedProcess process(int64_t pid, int64_t bytes) {
  WatchedProcess made;
  made.pid = pid;
  made.name = "p" + std::to_string(pid);
  made.bytes = bytes;
  return made;
}

TEST(ProcessTree, OneThatEndsBeforeItIsMeasuredHasItsNameAndParent) {
  const auto before = signal(SIGCHLD, SIG_IGN);  // nothing is left of one that has ended
  ProcessTree tree(getpid());
  for (int round = 0; round < 20; ++round) {
    // All are found before the first is measured; some of them end in between.
    for (int i = 0; i < 40; ++i) {
      if (fork() != 0) continue;
      usleep(static_cast<useconds_t>(i * 200));
      _exit(0);
    }
    tree.look();
    while (wait(nullptr) > 0) continue;  // until there is none
    for (const ProcessTree::Death& death : tree.take_deaths()) {
      EXPECT_EQ(death.process.parent, getpid());
      EXPECT_EQ(death.process.name, process_name(getpid()));
    }
  }
  signal(SIGCHLD, before);
}

TEST(TimelineTest, StaysSmallHoweverLongItRuns) {
  Timeline timeline;
  for (int64_t i = 0; i < 50000; ++i)
    timeline.add(i * 500, {process(1, 10 * mib), process(2, i == 777 ? 900 * mib : 20 * mib)}, {});
  EXPECT_LE(timeline.samples().size(), 1200u);
  EXPECT_EQ(timeline.samples().back().time_ms, 49999 * 500);
  EXPECT_LT(timeline.samples().front().time_ms, 50000 * 500 / 2);
  EXPECT_EQ(timeline.peak_bytes(), 910 * mib);
  EXPECT_EQ(timeline.peak_ms(), 777 * 500);
  int64_t highest = 0;
  for (size_t i = 0; i < timeline.samples().size(); ++i) {
    highest = std::max(highest, timeline.samples()[i].total_bytes);
    if (i > 0) {
      EXPECT_GT(timeline.samples()[i].time_ms, timeline.samples()[i - 1].time_ms);
    }
  }
  EXPECT_EQ(highest, 910 * mib) << "the peak of long ago was thinned out";
}

TEST(TimelineTest, StaysSmallHoweverManyProcessesThereAre) {
  Timeline timeline;
  for (int64_t i = 1; i <= 5000; ++i) timeline.add(i, {process(1, 100 * mib), process(1000 + i, mib)}, {});
  EXPECT_LE(timeline.series().size(), 258u);
  ASSERT_NE(timeline.find(1), nullptr) << "the large one that is there";
  EXPECT_EQ(timeline.find(1)->first_ms, 1);
  for (const TimelineSample& sample : timeline.samples()) {
    int64_t sum = 0;
    for (const auto& [series, bytes] : sample.bytes) sum += bytes;
    ASSERT_EQ(sum, 101 * mib) << "what was folded into others is still counted";
  }
  std::vector<WatchedProcess> crowd;
  for (int64_t i = 1; i <= 3000; ++i) crowd.push_back(process(i, i));
  timeline.add(6000, crowd, {});
  EXPECT_LE(timeline.samples().back().bytes.size(), 33u);
  EXPECT_EQ(timeline.samples().back().processes, 3000u);
}

TEST(TimelineTest, GrowthIsThatOfTheLastMinute) {
  Timeline timeline;
  EXPECT_FALSE(timeline.growth());
  for (int64_t s = 0; s <= 300; ++s) {
    std::vector<WatchedProcess> all = {process(1, (s < 200 ? s : 200) * 10 * mib), process(2, s * mib)};
    if (s > 290) all.push_back(process(3, 30 * mib));
    timeline.add(s * 1000, all, {});
  }
  const auto growth = timeline.growth();
  ASSERT_TRUE(growth);
  EXPECT_EQ(timeline.series()[growth->series].pid, 2) << "not who grew before, nor who grew less";
  EXPECT_EQ(growth->after_bytes - growth->before_bytes, 60 * mib);
  EXPECT_DOUBLE_EQ(growth->seconds, 60);
}

TEST(TimelineTest, AProcessIdThatComesBackIsAnotherProcess) {
  Timeline timeline;
  timeline.add(0, {process(7, mib)}, {});
  timeline.add(1, {}, {});
  timeline.add(2, {process(7, 2 * mib)}, {});
  EXPECT_EQ(timeline.series().size(), 3u);
  EXPECT_EQ(timeline.find(7)->first_ms, 2);
  EXPECT_EQ(timeline.find(8), nullptr);
}

TEST(PrintableTest, StrangersTextIsMadeHarmless) {
  EXPECT_EQ(printable("plain", 10), "plain");
  EXPECT_EQ(printable("a\nb\x1b[1m", 20), "a b [1m");
  EXPECT_EQ(printable("jos\xc3\xa9", 20), "jos\xc3\xa9");
  EXPECT_EQ(printable("\xff \xc3 x\xed\xa0\x80", 20), "? ? x???");
  EXPECT_EQ(printable("0123456789", 8), "01234...");
  EXPECT_EQ(printable("0123456\xc3\xa9\xc3\xa9\xc3\xa9", 12), "0123456\xc3\xa9...");
}

TEST(PrintableTest, WordsForAShellAreQuotedWhereTheyMustBe) {
  EXPECT_EQ(shell_word("runs/größe/20261121-063011-3fa2b1"), "runs/größe/20261121-063011-3fa2b1");
  EXPECT_EQ(shell_word("my runs/a"), "'my runs/a'");
  EXPECT_EQ(shell_word("it's $5;"), "'it'\\''s $5;'");
  EXPECT_EQ(shell_word("~x"), "'~x'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(QuantitiesTest, AreReadable) {
  EXPECT_EQ(time_text(0.42), "0.42 s");
  EXPECT_EQ(time_text(12.5), "12.5 s");
  EXPECT_EQ(time_text(59.8), "1 min 0 s");
  EXPECT_EQ(time_text(130), "2 min 10 s");
  EXPECT_EQ(time_text(11130), "3 h 5 min");
}

}  // namespace
}  // namespace headroom
