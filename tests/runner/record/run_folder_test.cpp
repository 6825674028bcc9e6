#include "record/run_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "error.hpp"
#include "record/numbers.hpp"
#include "record/output_file.hpp"
#include "temporary_folder.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

class RunFolderTest : public TemporaryFolder {};

Exit exit_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.exit_code();
  }
  return Exit::ok;
}

TEST_F(RunFolderTest, IsNamedByTimeAndAnId) {
  RunFolder first = RunFolder::create(folder_ / "runs", "emg");
  RunFolder second = RunFolder::create(folder_ / "runs", "emg");
  EXPECT_THAT(first.path().string(), StartsWith((folder_ / "runs" / "emg").string() + "/"));
  EXPECT_THAT(first.id(), MatchesRegex("20[0-9]{6}-[0-9]{6}-[0-9a-f]{6}"));
  EXPECT_NE(first.id(), second.id());
}

TEST_F(RunFolderTest, NamesAreMadeFitForFileSystems) {
  auto made_of = [&](const std::string& name) {
    return RunFolder::create(folder_, name).path().parent_path().lexically_relative(folder_).string();
  };
  EXPECT_EQ(made_of("tds_lstm-1.5"), "tds_lstm-1.5");
  EXPECT_EQ(made_of("a/b\\c:d\n*"), "a_b_c_d__");
  EXPECT_EQ(made_of(".."), "_.");
  EXPECT_EQ(made_of("-rf"), "_rf");
  EXPECT_EQ(made_of(""), "run");
  EXPECT_EQ(made_of("händler"), "händler");
  EXPECT_EQ(made_of(std::string(99, 'a') + "äää"), std::string(99, 'a'));
}

TEST_F(RunFolderTest, AnotherHolderIsNamed) {
  RunFolder run = RunFolder::create(folder_, "emg");
  std::string sentence;
  EXPECT_EQ(exit_of([&] { RunFolder::open(run.path()); }), Exit::cannot_write);
  EXPECT_EQ(sentence_of([&] { RunFolder::open(run.path()); }),
            "[record] " + run.path().string() + " is being written by process " + std::to_string(::getpid()) +
                "; wait for it, stop it, or start a new run");
}

TEST_F(RunFolderTest, TheLockEndsWithItsProcess) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const fs::path path = RunFolder::create(folder_, "emg").path();
  const pid_t child = ::fork();
  if (child == 0) {
    RunFolder run = RunFolder::open(path);
    [[maybe_unused]] ssize_t written = ::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(sentence_of([&] { RunFolder::open(path); }),
              HasSubstr("is being written by process " + std::to_string(child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(sentence_of([&] { RunFolder::open(path); }), "");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(RunFolderTest, WhoLooksKeepsNobodyOut) {
  const fs::path path = [&] { return RunFolder::create(folder_, "emg").path(); }();
  const int looking = ::open((path / "lock").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(looking, LOCK_SH), 0);
  EXPECT_FALSE(is_being_written(path));
  std::thread looks([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::close(looking);
  });
  EXPECT_EQ(sentence_of([&] { RunFolder::open(path); }), "");
  looks.join();
}

TEST_F(RunFolderTest, MovingKeepsTheLock) {
  RunFolder first = RunFolder::create(folder_, "emg");
  const fs::path path = first.path();
  {
    RunFolder second = std::move(first);
    EXPECT_EQ(exit_of([&] { RunFolder::open(path); }), Exit::cannot_write);
  }
  EXPECT_EQ(exit_of([&] { RunFolder::open(path); }), Exit::ok);
}

TEST_F(RunFolderTest, WhatIsNoRunIsRefused) {
  EXPECT_EQ(exit_of([&] { RunFolder::open(folder_); }), Exit::bad_input);
  EXPECT_EQ(sentence_of([&] { RunFolder::open(folder_); }),
            "[record] " + folder_.string() + " is not a run's folder: it holds no experiment.toml");
  EXPECT_EQ(sentence_of([&] { RunFolder::open(folder_ / "absent"); }),
            "[record] " + (folder_ / "absent").string() + ": there is no such folder");
  EXPECT_FALSE(fs::exists(folder_ / "lock")) << "looking leaves nothing behind";
  const fs::path run = RunFolder::create(folder_, "emg").path();
  EXPECT_THAT(sentence_of([&] { RunFolder::open(folder_ / "emg"); }), EndsWith("; did you mean " + run.string() + "?"));
}

TEST_F(RunFolderTest, OpensByAnySpellingOfItsPath) {
  const fs::path run = RunFolder::create(folder_, "emg").path();
  EXPECT_EQ(RunFolder::open(run / "").id(), run.filename());
  EXPECT_EQ(RunFolder::open(run / ".").id(), run.filename());
  EXPECT_EQ(RunFolder::open(run.parent_path() / ".." / "emg" / run.filename()).path(), run);
}

TEST_F(RunFolderTest, APlaceThatCannotBeWrittenIsSaid) {
  write_text(folder_ / "file", "");
  EXPECT_EQ(exit_of([&] { RunFolder::create(folder_ / "file", "emg"); }), Exit::cannot_write);
  EXPECT_THAT(sentence_of([&] { RunFolder::create(folder_ / "file", "emg"); }),
              HasSubstr((folder_ / "file" / "emg").string() + " cannot be written: Not a directory"));
  EXPECT_THAT(sentence_of([&] { RunFolder::create("/proc", "emg"); }), HasSubstr("/proc/emg cannot be written: "));
}

TEST_F(RunFolderTest, AtomicWritesReplaceWhole) {
  write_file_atomically(folder_ / "a.json", "first");
  write_file_atomically(folder_ / "a.json", "second");
  EXPECT_EQ(read_text(folder_ / "a.json"), "second");
  fs::create_directory(folder_ / "taken");
  EXPECT_THAT(sentence_of([&] { write_file_atomically(folder_ / "taken", "x"); }),
              HasSubstr((folder_ / "taken").string() + " cannot be written: Is a directory"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2) << "nothing is left beside them";
}

// As /dev/stdout and /dev/null, which root could replace.
TEST_F(RunFolderTest, PipesAndLinksAreWrittenToAndNotReplaced) {
  const fs::path path = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int pipe = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(pipe, 0);
  write_file_atomically(path, "text");
  std::string read(16, '\0');
  read.resize(static_cast<size_t>(std::max<ssize_t>(::read(pipe, read.data(), read.size()), 0)));
  ::close(pipe);
  EXPECT_EQ(read, "text");
  EXPECT_TRUE(fs::is_fifo(path));
  fs::create_symlink("file", folder_ / "link");
  write_file_atomically(folder_ / "link", "text");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_text(folder_ / "file"), "text");
}

TEST_F(RunFolderTest, AtomicWritesOfOneFileAtATimeAreAllWhole) {
  const std::string a(1 << 20, 'a'), b(1 << 20, 'b');
  const auto write_again = [&](const std::string& bytes) {
    for (int i = 0; i < 10; ++i) write_file_atomically(folder_ / "report.html", bytes);
  };
  std::string refused;
  std::thread other([&] { refused = sentence_of([&] { write_again(a); }); });
  EXPECT_EQ(sentence_of([&] { write_again(b); }), "");
  other.join();
  EXPECT_EQ(refused, "");
  const std::string left = read_text(folder_ / "report.html");
  EXPECT_TRUE(left == a || left == b);
}

TEST(ParseJson, GivesNullForWhatIsNoneAndForTooManyLevels) {
  EXPECT_EQ(parse_json(R"({"a": "]}\"[", "b": [[1]]})").at("b"), nlohmann::json::parse("[[1]]"));
  EXPECT_TRUE(parse_json("{\"a\": ").is_null());
  EXPECT_TRUE(parse_json("").is_null());
  EXPECT_FALSE(parse_json(std::string(100, '[') + std::string(100, ']')).is_null());
  EXPECT_TRUE(parse_json(std::string(101, '[') + std::string(101, ']')).is_null());
  EXPECT_FALSE(parse_json("\"" + std::string(200, '[') + "\"").is_null()) << "in a string";
}

TEST_F(RunFolderTest, LogFilesGoOnAndAreCutBack) {
  {
    LogFile log(folder_ / "log");
    log.line("one");
    EXPECT_EQ(log.length(), 4u);
    log.line("two");
  }
  LogFile log(folder_ / "log");
  EXPECT_EQ(log.length(), 8u);
  log.truncate(4);
  log.line("three");
  log.truncate(1000);
  log.sync();
  EXPECT_EQ(log.length(), 10u);
  EXPECT_EQ(read_text(folder_ / "log"), "one\nthree\n");
}

// A child, because the limit stays: a line that does not fit leaves no half behind.
TEST_F(RunFolderTest, ALogThatCannotGrowKeepsWholeLines) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit {
      10, 10
    };
    ::setrlimit(RLIMIT_FSIZE, &limit);
    LogFile log(folder_ / "log");
    log.line("1234567");
    const bool refused = exit_of([&] { log.line("longer than the rest"); }) == Exit::cannot_write;
    ::_exit(refused && log.length() == 8 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_text(folder_ / "log"), "1234567\n");
}

TEST(Timestamps, AreUtc) {
  using namespace std::chrono;
  const WallTime time{duration_cast<WallTime::duration>(milliseconds(1795242611042))};
  EXPECT_EQ(rfc3339(time), "2026-11-21T06:30:11.042Z");
  EXPECT_EQ(compact_time(time), "20261121-063011");
  EXPECT_EQ(rfc3339(WallTime{duration_cast<WallTime::duration>(milliseconds(-1))}), "1969-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace headroom
