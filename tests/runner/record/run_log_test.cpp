#include "record/run_log.hpp"

#include <cmath>
#include <gmock/gmock.h>
#include <limits>
#include <sstream>
#include <thread>

#include "event_reader.hpp"
#include "record/numbers.hpp"
#include "record/tensorboard.hpp"
#include "temporary_folder.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::MatchesRegex;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

class RunLogTest : public TemporaryFolder {
 protected:
  static std::vector<json> lines_of(const fs::path& path) {
    std::vector<json> lines;
    std::istringstream text(read_text(path));
    for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
    return lines;
  }
  static fs::path event_file(const fs::path& run) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(run)) {
      if (entry.path().filename().string().starts_with("events.out.tfevents.")) found.push_back(entry.path());
    }
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? fs::path() : found[0];
  }
};

TEST_F(RunLogTest, EventsAreLinesOfJsonWithTimeAndKindFirst) {
  RunFolder folder = RunFolder::create(folder_, "x");
  RunLog log(folder);
  log.event("start", {{"b", nan}, {"a", {1, 2}}, {"kind", "other"}});
  log.event("odd", {{"text", "\xff line\nbreak"}});
  const std::string text = read_text(folder.path() / "events.jsonl");
  EXPECT_THAT(text.substr(0, text.find('\n')),
              MatchesRegex(R"re(\{"time":"20..-..-..T..:..:..\....Z","kind":"start","a":\[1,2\],"b":null\})re"));
  EXPECT_EQ(lines_of(folder.path() / "events.jsonl")[1]["text"], "\uFFFD line\nbreak");
}

TEST_F(RunLogTest, ScalarsReachEverySink) {
  RunFolder folder = RunFolder::create(folder_, "x");
  RunLog log(folder);
  log.scalars(50, 0, {{"train/loss", 0.1}, {"lr", 5e-4}, {"val/mae/index, \"left\"", -1e300}});
  log.scalars(int64_t{1} << 40, 3, {{"train/loss", nan}, {"val/loss", infinity}, {"val/low", -infinity}});
  EXPECT_EQ(read_text(folder.path() / "metrics.csv"),
            "step,epoch,split,metric,value\n"
            "50,0,train,loss,0.1\n"
            "50,0,,lr,5e-04\n"
            "50,0,val,\"mae/index, \"\"left\"\"\",-1e+300\n"
            "1099511627776,3,train,loss,nan\n"
            "1099511627776,3,val,loss,inf\n"
            "1099511627776,3,val,low,-inf\n");
  const auto events = lines_of(folder.path() / "events.jsonl");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["values"]["lr"], 5e-4);
  EXPECT_EQ(events[1]["values"]["train/loss"], nullptr);
  EXPECT_EQ(events[1]["epoch"], 3);

  const auto records = EventReader::read(read_text(event_file(folder.path())));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].file_version, "brain.Event:2");
  EXPECT_EQ(records[1].step, 50);
  EXPECT_EQ(records[1].values[0], (std::pair<std::string, float>("train/loss", 0.1f)));
  EXPECT_EQ(records[2].step, int64_t{1} << 40);
  EXPECT_TRUE(std::isnan(records[2].values[0].second));
  EXPECT_GT(records[2].wall_time, 1.7e9);
}

TEST_F(RunLogTest, MemoryIsALineForPeopleAndOneForPrograms) {
  RunFolder folder = RunFolder::create(folder_, "x");
  RunLog log(folder);
  testing::internal::CaptureStderr();
  log.memory(100, {{"process_bytes", 812}}, "[Step 100] Memory - Process: 812.4MB (3.3%)");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[Step 100] Memory - Process: 812.4MB (3.3%)\n");
  const auto lines = lines_of(folder.path() / "memory.jsonl");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["step"], 100);
  EXPECT_EQ(lines[0]["process_bytes"], 812);
}

TEST_F(RunLogTest, APipeGetsWholeLines) {
  RunFolder folder = RunFolder::create(folder_, "x");
  testing::internal::CaptureStderr();
  {
    RunLog log(folder, 2);
    log.begin_epoch("train", 1, 10, 5);
    for (int64_t step = 1; step <= 5; ++step) log.progress(step, {{"loss", 1.0 / static_cast<double>(step)}});
    log.say("a word in between");
    log.begin_epoch("val", 1, 10, 3);
    log.progress(1, {});
    log.end_epoch({{"train/loss", 0.123456}, {"val/loss", 12345.6}});
    log.progress(4, {});  // outside of an epoch: nothing to say
  }
  std::string text = testing::internal::GetCapturedStderr();
  for (size_t colon; (colon = text.find(":0")) != std::string::npos;) text.replace(colon - 1, 4, "T");
  EXPECT_EQ(text,
            "Epoch 2/10 train: 2/5 (40%), loss 0.5, T left\n"
            "Epoch 2/10 train: 4/5 (80%), loss 0.25, T left\n"
            "a word in between\n"
            "Epoch 2/10: train/loss 0.1235, val/loss 12346 (T)\n");
}

// What follows a resume continues the files exactly: nothing doubled, nothing lost, one event file.
TEST_F(RunLogTest, AResumedLogEqualsTheUndisturbedOne) {
  auto step = [](RunLog& log, int64_t n) {
    log.event("step", {{"n", n}});
    log.scalars(n, 0, {{"train/loss", 1.0 / static_cast<double>(n)}, {"late/" + std::to_string(n / 4), 1.0}});
    log.memory(n, {{"bytes", n}}, "line");
  };
  testing::internal::CaptureStderr();
  RunFolder whole = RunFolder::create(folder_, "whole");
  {
    RunLog log(whole);
    for (int64_t n = 1; n <= 10; ++n) step(log, n);
  }
  fs::path path;
  json lengths;
  {
    RunFolder first = RunFolder::create(folder_, "cut");
    path = first.path();
    RunLog log(first);
    for (int64_t n = 1; n <= 5; ++n) step(log, n);
    lengths = json::parse(log.lengths().dump());  // as a checkpoint keeps it
    for (int64_t n = 6; n <= 8; ++n) step(log, n);
  }
  {
    RunFolder again = RunFolder::open(path);
    RunLog log(again);
    log.truncate(lengths);
    for (int64_t n = 6; n <= 10; ++n) step(log, n);
  }
  testing::internal::GetCapturedStderr();

  EXPECT_EQ(read_text(path / "metrics.csv"), read_text(whole.path() / "metrics.csv"));
  for (const char* name : {"events.jsonl", "memory.jsonl"}) {
    auto ours = lines_of(path / name), theirs = lines_of(whole.path() / name);
    ASSERT_EQ(ours.size(), theirs.size()) << name;
    for (size_t i = 0; i < ours.size(); ++i) {
      ours[i].erase("time");
      theirs[i].erase("time");
      EXPECT_EQ(ours[i], theirs[i]);
    }
  }
  const auto ours = EventReader::read(read_text(event_file(path)));
  const auto theirs = EventReader::read(read_text(event_file(whole.path())));
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].step, theirs[i].step);
    EXPECT_EQ(ours[i].values, theirs[i].values);
    EXPECT_EQ(ours[i].file_version, theirs[i].file_version);
  }
}

TEST_F(RunLogTest, TruncatingToNothingLeavesFilesAsAtTheirBeginning) {
  RunFolder folder = RunFolder::create(folder_, "x");
  RunLog log(folder);
  const json beginning = log.lengths();
  log.event("a", {});
  log.scalars(1, 0, {{"train/loss", 1}});
  log.truncate(json::object());
  EXPECT_EQ(log.lengths(), beginning);
  log.scalars(2, 0, {{"train/loss", 1}});
  log.sync();
  EXPECT_EQ(read_text(folder.path() / "metrics.csv"), "step,epoch,split,metric,value\n2,0,train,loss,1\n");
  EXPECT_EQ(EventReader::read(read_text(event_file(folder.path()))).size(), 2u);
}

// Both log the same; the first ends behind the marks, with lines that the other has yet to come to.
TEST_F(RunLogTest, TheLogOfAnotherProcessGoesOnWhereTheFirstOneEnded) {
  fs::path path;
  RunLog other = RunLog::standby();
  const auto step = [](RunLog& log, int64_t n) {
    log.event("step", {{"step", n}});
    log.scalars(n, 0, {{"train/loss", 1.0 / static_cast<double>(n)}});
    log.memory(n, {{"bytes", n}}, "line");
  };
  testing::internal::CaptureStderr();
  {
    RunFolder folder = RunFolder::create(folder_, "x");
    path = folder.path();
    RunLog first(folder);
    for (RunLog* log : {&first, &other}) log->truncate(json::object());
    for (int64_t n = 1; n <= 3; ++n) {
      for (RunLog* log : {&first, &other}) step(*log, n);
      if (n == 2) other.settled(first.marks());
    }
    step(first, 4);
  }
  RunFolder folder = RunFolder::open(path);
  other.take_over(folder, 1);
  for (int64_t n = 4; n <= 5; ++n) step(other, n);
  testing::internal::GetCapturedStderr();

  EXPECT_EQ(read_text(path / "metrics.csv"),
            "step,epoch,split,metric,value\n1,0,train,loss,1\n2,0,train,loss,0.5\n3,0,train,loss,0.3333333333333333\n"
            "4,0,train,loss,0.25\n5,0,train,loss,0.2\n");
  const auto events = lines_of(path / "events.jsonl"), memory = lines_of(path / "memory.jsonl");
  ASSERT_EQ(events.size(), 10u);  // and the scalars
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i]["step"], i / 2 + 1);
  ASSERT_EQ(memory.size(), 5u);
  EXPECT_EQ(memory[3]["bytes"], 4);
  EXPECT_EQ(EventReader::read(read_text(event_file(path))).size(), 6u);
  EXPECT_EQ(other.lengths()["events.jsonl"], fs::file_size(path / "events.jsonl"));
}

TEST_F(RunLogTest, LinesOfManyThreadsStayWhole) {
  RunFolder folder = RunFolder::create(folder_, "x");
  RunLog log(folder);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 100; ++i) log.event("x", {{"thread", thread}, {"i", i}});
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(lines_of(folder.path() / "events.jsonl").size(), 400u);
  EXPECT_EQ(log.lengths()["events.jsonl"], fs::file_size(folder.path() / "events.jsonl"));
}

TEST_F(RunLogTest, TheSummaryCarriesItsFormatAndTime) {
  RunFolder folder = RunFolder::create(folder_, "x");
  write_summary(folder, {{"best", nan}, {"exit", 0}});
  json summary = json::parse(read_text(folder.path() / "summary.json"));
  EXPECT_TRUE(seconds_of(summary.at("time").get<std::string>()));
  summary.erase("time");
  EXPECT_EQ(summary, (json{{"best", nullptr}, {"exit", 0}, {"format", 1}}));
}

TEST(Crc32c, AgreesWithPublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

}  // namespace
}  // namespace headroom
