#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../../end_to_end/program.hpp"
#include "cli/watch_report.hpp"
#include "memory/proc_file.hpp"
#include "memory/stand_in/stand_in.hpp"
#include "record/postmortem.hpp"
#include "record/run_folder.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class WatchCommand : public WithFolder {
 protected:
  Finished watch(std::vector<std::string> words) const {
    words.insert(words.begin(), "watch");
    return headroom_program(std::move(words), {.folder = folder_, .environment = {}});
  }
};

TEST_F(WatchCommand, EndsAsTheCommandDoes) {
  for (const int code : {0, 1, 75}) {
    const Finished finished = watch({"--", "sh", "-c", "exit " + std::to_string(code)});
    EXPECT_EQ(finished.exit_code, code);
    EXPECT_NE(finished.err.find("[watch] the command ended with exit code " + std::to_string(code)), std::string::npos)
        << finished.err;
  }
  const Finished killed = watch({"--", "sh", "-c", "kill -9 $$"});
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_NE(killed.err.find("the command, was killed with SIGKILL, not by the kernel for lack of memory"),
            std::string::npos)
      << killed.err;
  EXPECT_EQ(watch({"--", "sh", "-c", "kill -SEGV $$"}).exit_code, 139);
}

TEST_F(WatchCommand, WhatCannotRunIsAsInAShell) {
  EXPECT_EQ(watch({"--", "surely-no-such-program"}).exit_code, 127);
  EXPECT_EQ(watch({"--", folder_.string()}).exit_code, 126);
}

TEST_F(WatchCommand, WantsACommandBehindDashes) {
  for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                 {"--"},
                                                                 {"sh", "-c", "exit 3"},
                                                                 {"--svg", "a.svg", "true"},
                                                                 {"--nonsense", "--", "true"},
                                                                 {"--interval", "nan", "--", "true"},
                                                                 {"--interval", "0", "--", "true"}}) {
    const Finished finished = watch(words);
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
  }
  EXPECT_NE(watch({"sh", "-c", "x"}).err.find("-- sh ..."), std::string::npos);
  EXPECT_NE(watch({"--nonsense"}).err.find("no option --nonsense"), std::string::npos);
}

TEST_F(WatchCommand, LeavesTheCommandsWordsAndOutputAlone) {
  const Finished finished = watch(
      {"--out", "o.json", "--", "sh", "-c", "echo \"$@\"; echo no >&2", "--", "--out", "x", "--", "--help", "run"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, "--out x -- --help run\n");
  EXPECT_EQ(finished.err.find("no\n[watch]"), 0u) << finished.err;
  const Json json = read_json_file(folder_ / "o.json");
  EXPECT_EQ(json.at("command").size(), 9u);
}

// The program itself ignores both. A reader that leaves, and a file that may not grow, end a command as they do in a
// shell.
TEST_F(WatchCommand, LeavesSignalsAsACommandKnowsThem) {
  const Finished finished = watch({"--", "sh", "-c",
                                   "while read -r name mask; do [ $name != SigIgn: ] || echo $mask; done "
                                   "< /proc/self/status; kill -XFSZ $$; echo lived"});
  EXPECT_EQ(finished.exit_code, 128 + SIGXFSZ) << finished.out;
  const uint64_t ignored = std::stoull(finished.out, nullptr, 16);
  for (const int signal : {SIGPIPE, SIGXFSZ}) EXPECT_EQ(ignored >> (signal - 1) & 1, 0u) << signal;
}

TEST_F(WatchCommand, SaysBeforehandWhatCannotBeWritten) {
  const Finished finished = watch({"--out", "absent/o.json", "--", "sh", "-c", "echo ran"});
  EXPECT_EQ(finished.exit_code, 6);
  EXPECT_EQ(finished.out, "");
}

TEST_F(WatchCommand, ForwardsSignals) {
  Program program({"watch", "--", "sh", "-c", "trap 'exit 9' TERM; echo $$ > ready; while :; do sleep 0.01; done"},
                  {.folder = folder_, .environment = {}});
  ASSERT_GT(id_in("ready"), 0);
  program.signal(SIGTERM);
  const Finished finished = program.wait();
  EXPECT_EQ(finished.exit_code, 9);
  EXPECT_NE(finished.err.find("it had been sent SIGTERM by process " + std::to_string(getpid())), std::string::npos)
      << finished.err;
}

// Whether process `supervisor` holds a pidfd of `pid`.
bool looks_after(pid_t supervisor, pid_t pid) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(supervisor) + "/fdinfo", error)) {
    if (number_after(read_proc_file(entry.path()).value_or(""), "Pid:") == pid) return true;
  }
  return false;
}

TEST_F(WatchCommand, NamesWhatTookTheRoom) {
  constexpr int64_t mib = 1 << 20;
  WatchReport report;
  report.end = ChildEnd{};
  report.bound = {.cgroup = "/job", .limit_bytes = 200 * mib};
  WatchedDeath death;
  death.signal = SIGKILL;
  death.oom_kill = OomKill{};
  death.together_bytes = 17 * mib;
  death.around = {.first = {.used_bytes = mib},
                  .last = {.used_bytes = 198 * mib, .others_bytes = 2 * mib, .files_bytes = 181 * mib},
                  .seconds = 3};
  report.deaths = {death};
  const auto said = [&](size_t line) { return watch_lines(report).at(line); };
  EXPECT_NE(said(2).find(", beside 181.0 MiB of files in memory (tmpfs, as /dev/shm); the limit is 200.0 MiB"),
            std::string::npos)
      << said(2);
  EXPECT_EQ(said(3), "grew most in the 3.0 s before: files in memory (tmpfs, as /dev/shm), from 0 B to 181.0 MiB");
  EXPECT_EQ(said(4),
            "make room: fewer or smaller files in memory (tmpfs, as /dev/shm), smaller batches, or a limit above "
            "200.0 MiB");
  report.deaths[0].around.last = {.used_bytes = 198 * mib, .others_bytes = 60 * mib, .files_bytes = 3 * mib};
  EXPECT_NE(said(2).find(", beside 60.0 MiB of other processes; "), std::string::npos) << said(2);
  EXPECT_EQ(said(3), "grew most in the 3.0 s before: other processes, from 0 B to 60.0 MiB");
  EXPECT_NE(said(4).find("fewer other processes beside it, smaller batches"), std::string::npos) << said(4);
}

TEST_F(WatchCommand, TellsOfAKilledChild) {
  // The shell takes the child's status only in the end.
  Program program({"watch", "--interval", "0.02", "--out", "o.json", "--svg", "o.svg", "--", "sh", "-c",
                   "sleep 1000 & echo $! > child; while [ ! -e go ]; do sleep 0.01; done; echo '<&>' > out; exit 4"},
                  {.folder = folder_, .environment = {}});
  ASSERT_TRUE(eventually([&] { return looks_after(program.id(), id_in("child")); }));
  kill(id_in("child"), SIGKILL);
  ASSERT_TRUE(eventually([&] { return !looks_after(program.id(), id_in("child")); }));
  std::ofstream(folder_ / "go") << "";
  const Finished finished = program.wait();
  EXPECT_EQ(finished.exit_code, 4);
  const std::string child = std::to_string(id_in("child"));
  EXPECT_NE(finished.err.find(" (process " + child + "), a child of the command, was killed with SIGKILL"),
            std::string::npos)
      << finished.err;
  EXPECT_NE(finished.err.find("[watch] the command ended with exit code 4"), std::string::npos) << finished.err;

  const Json json = read_json_file(folder_ / "o.json");
  EXPECT_EQ(json.at("format"), 1);
  EXPECT_EQ(json.at("state"), "ended");
  EXPECT_EQ(json.at("exit_code"), 4);
  ASSERT_EQ(json.at("deaths").size(), 1u);
  EXPECT_EQ(std::to_string(json["deaths"][0].at("pid").get<int64_t>()), child);
  EXPECT_EQ(json["deaths"][0].at("signal"), "SIGKILL");
  EXPECT_FALSE(json["deaths"][0].contains("oom_kill"));
  const size_t samples = json.at("samples").at("seconds").size();
  EXPECT_GE(samples, 1u);
  for (const auto& [name, values] : json["samples"].items()) EXPECT_EQ(values.size(), samples) << name;
  EXPECT_GE(json.at("processes").size(), 2u);
  for (const Json& process : json["processes"]) EXPECT_EQ(process.at("bytes").size(), samples);

  std::ifstream stream(folder_ / "o.svg");
  const std::string svg{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(svg.find("<svg xmlns="), 0u);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  EXPECT_NE(svg.find(" (process " + child + ")</text>"), std::string::npos);
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(svg.find("&lt;&amp;&gt;"), std::string::npos) << "words of the command are text, not markup";
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

// A shell whose child holds 64 MiB more than it did: text, JSON and picture name the child.
TEST_F(WatchCommand, ShowsWhoGrew) {
  const Finished finished = watch({"--interval", "0.02", "--out", "o.json", "--svg", "o.svg", "--", "sh", "-c",
                                   "sh -c 'echo $$ > child; sleep 0.3; x=$(head -c 67108864 /dev/zero | tr \"\\0\" "
                                   "a); sleep 0.3; kill -9 $$' & wait $!; exit 3"});
  EXPECT_EQ(finished.exit_code, 3) << finished.err;
  const std::string child = std::to_string(id_in("child"));
  EXPECT_NE(finished.err.find("[watch] grew most in the "), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find(" before: sh (process " + child + "), from "), std::string::npos) << finished.err;

  constexpr int64_t grown = int64_t{60} << 20;
  const Json json = read_json_file(folder_ / "o.json");
  ASSERT_EQ(json.at("deaths").size(), 1u);
  const Json& death = json["deaths"][0];
  EXPECT_EQ(std::to_string(death.at("pid").get<int64_t>()), child);
  EXPECT_EQ(death.at("parent"), json.at("pid"));
  EXPECT_EQ(death.at("grew_most").at("pid"), death["pid"]);
  EXPECT_GT(death["grew_most"].at("after_bytes").get<int64_t>() - death["grew_most"].at("before_bytes").get<int64_t>(),
            grown);
  EXPECT_GT(death.at("last_seen_bytes"), grown);
  const Json& largest = json.at("processes").at(0);
  EXPECT_EQ(largest.at("pid"), death["pid"]);
  const auto bytes = largest.at("bytes").get<std::vector<int64_t>>();
  EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()), largest.at("peak_bytes"));
  EXPECT_GE(json.at("peak_bytes"), largest["peak_bytes"]);

  std::ifstream stream(folder_ / "o.svg");
  const std::string svg{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_NE(svg.find("class=\"killed\" text-anchor=\"start\">sh (" + child + ")</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(" MiB</text>"), std::string::npos) << "the axis has the units of the words";
}

// Four workers at the kill, one long after it: the advice is about the four.
TEST(WatchLines, AdviseOnWhatThereWasAtTheKill) {
  const auto process = [](int64_t pid) {
    WatchedProcess worker;
    worker.pid = pid;
    worker.bytes = int64_t{100} << 20;
    return worker;
  };
  WatchReport report{.command = {"train"}, .pid = 1};
  report.end.emplace();
  report.timeline.add(0, {process(1), process(2), process(3), process(4)}, {});
  report.timeline.add(1000, {process(1), process(2), process(3), process(4)}, {});
  report.timeline.add(2000, {process(1)}, {});
  WatchedDeath death{.process = process(4), .time_ms = 1500, .signal = SIGKILL};
  death.oom_kill.emplace();
  report.deaths = {death};
  EXPECT_NE(watch_lines(report).back().find("fewer or lighter worker processes"), std::string::npos);
  report.deaths[0].time_ms = 2500;
  EXPECT_EQ(watch_lines(report).back().find("fewer or lighter worker processes"), std::string::npos);
}

TEST_F(WatchCommand, DrawsAlsoWhatWasTooShort) {
  EXPECT_EQ(watch({"--svg", "o.svg", "--", "true"}).exit_code, 0);
  std::ifstream stream(folder_ / "o.svg");
  const std::string svg{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(WatchCommand, StaysSmall) {
  const Finished finished = watch({"--interval", "0.01", "--", "sleep", "1"});
  EXPECT_LT(finished.peak_resident_bytes, int64_t{30} << 20);
}
#endif

}  // namespace
}  // namespace headroom
