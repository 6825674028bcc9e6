#include "record/progress.hpp"

#include <algorithm>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <limits>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "record/numbers.hpp"

namespace headroom {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

int width(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

ProgressState half_way() {
  return {"Epoch 3/10", "train", 450, 1000, 42, {{"train/loss", 0.123456}, {"lr", 5e-4}, {"samples/s", 12.34}}};
}

TEST(ProgressLine, ShowsWhatFits) {
  const Terminal ascii;
  EXPECT_EQ(progress_bar(half_way(), ascii, 80),
            "Epoch 3/10 train  45% [========----------] 450/1000  0:42 left  loss 0.1235");
  EXPECT_EQ(progress_bar(half_way(), ascii, 200),
            "Epoch 3/10 train  45% [============----------------] 450/1000  0:42 left  loss 0.1235  lr 0.0005"
            "  12.34 samples/s");
  EXPECT_EQ(progress_bar(half_way(), ascii, 44), "Epoch 3/10 train  45% [====-----] 450/1000");
  EXPECT_EQ(progress_bar(half_way(), ascii, 32), "Epoch 3/10 train  45% 450/1000");
  EXPECT_EQ(progress_bar(half_way(), ascii, 12), "Epoch 3/10 ");
  EXPECT_EQ(progress_bar(half_way(), {.utf8 = true}, 60), "Epoch 3/10 train  45% ━━━━━━───────── 450/1000  0:42 left");
}

TEST(ProgressLine, NeverReachesTheLastColumn) {
  ProgressState state = half_way();
  for (bool utf8 : {false, true}) {
    for (int64_t done : {0, 1, 999, 1000, 1200}) {
      state.done = done;
      for (int columns = 0; columns < 150; ++columns) {
        EXPECT_LT(width(progress_bar(state, {.utf8 = utf8}, columns)), std::max(columns, 1)) << columns;
      }
    }
  }
}

TEST(ProgressLine, WithoutATotalThereIsNoBar) {
  const ProgressState state{"Epoch 1/1", "train", 7, 0, -1, {}};
  EXPECT_EQ(progress_bar(state, {}, 80), "Epoch 1/1 train 7");
  EXPECT_EQ(progress_text(state), "Epoch 1/1 train: 7");
}

TEST(ProgressLine, TextSaysEverything) {
  EXPECT_EQ(progress_text(half_way()),
            "Epoch 3/10 train: 450/1000 (45%), loss 0.1235, lr 0.0005, 12.34 samples/s, 0:42 left");
}

TEST(Numbers, HaveFourDigits) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.1234567), "0.1235");
  EXPECT_EQ(short_number(-0.0001234567), "-0.0001235");
  EXPECT_EQ(short_number(1.0), "1");
  EXPECT_EQ(short_number(10.0), "10");
  EXPECT_EQ(short_number(100.04), "100");
  EXPECT_EQ(short_number(12345.678), "12346");
  EXPECT_EQ(short_number(1234567), "1.235e+06");
  EXPECT_EQ(short_number(1e-7), "1e-07");
  EXPECT_EQ(short_number(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(short_number(-std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(exact_number(0.1), "0.1");
  EXPECT_EQ(exact_number(1.0 / 3), "0.3333333333333333");
}

TEST(Numbers, DurationsAreShort) {
  EXPECT_EQ(short_duration(0.4), "0:00");
  EXPECT_EQ(short_duration(59.6), "1:00");
  EXPECT_EQ(short_duration(3909), "1:05:09");
  EXPECT_EQ(short_duration(2 * 86400 + 3 * 3600 + 60), "2d 03:01");
  EXPECT_EQ(short_duration(std::numeric_limits<double>::infinity()), "?");
}

// A real terminal, 80 columns wide, whose screen is read from the other end; the clock stands still unless told.
class ProgressTest : public testing::Test {
 protected:
  void SetUp() override {
    screen_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (screen_ < 0 || ::grantpt(screen_) != 0 || ::unlockpt(screen_) != 0) GTEST_SKIP() << "no pseudo-terminal here";
    file_ = ::open(::ptsname(screen_), O_RDWR | O_NOCTTY);
    if (file_ < 0) GTEST_SKIP() << "no pseudo-terminal here";
    resize(80);
    for (const char* name : {"TERM", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"}) {
      if (const char* value = ::getenv(name)) before_.emplace_back(name, value);
      ::unsetenv(name);
    }
    ::setenv("TERM", "xterm", 1);
  }
  void TearDown() override {
    if (file_ >= 0) ::close(file_);
    if (screen_ >= 0) ::close(screen_);
    for (const char* name : {"TERM", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"}) ::unsetenv(name);
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  void resize(unsigned short columns) const {
    struct winsize size {};
    size.ws_row = 24;
    size.ws_col = columns;
    ASSERT_EQ(::ioctl(file_, TIOCSWINSZ, &size), 0);
  }
  std::string shown() const {
    std::string text;
    struct pollfd wait {
      screen_, POLLIN, 0
    };
    while (::poll(&wait, 1, 0) > 0 && (wait.revents & POLLIN) != 0) {
      char buffer[4096];
      const ssize_t length = ::read(screen_, buffer, sizeof buffer);
      if (length <= 0) break;
      text.append(buffer, static_cast<size_t>(length));
    }
    return text;
  }
  Seconds clock() {
    return [this] { return now_; };
  }

  int screen_ = -1, file_ = -1;
  double now_ = 1000;
  std::vector<std::pair<std::string, std::string>> before_;
};

TEST_F(ProgressTest, KnowsWhatATerminalCan) {
  EXPECT_TRUE(terminal_of(file_).control);
  EXPECT_TRUE(terminal_of(file_).color);
  EXPECT_FALSE(terminal_of(file_).utf8);
  ::setenv("LANG", "de_DE.UTF-8", 1);
  EXPECT_TRUE(terminal_of(file_).utf8);
  ::setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(terminal_of(file_).utf8);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(terminal_of(file_).color);
  EXPECT_TRUE(terminal_of(file_).control);
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(terminal_of(file_).control);
  ::unsetenv("TERM");
  EXPECT_FALSE(terminal_of(file_).control);
  EXPECT_EQ(terminal_of(file_).columns(), 80);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::setenv("TERM", "xterm", 1);
  EXPECT_FALSE(terminal_of(ends[1]).control);
  EXPECT_EQ(terminal_of(ends[1]).columns(), 80);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(ProgressTest, RedrawsAtMostTenTimesASecond) {
  ::setenv("NO_COLOR", "1", 1);
  Progress progress(terminal_of(file_), 50, clock());
  progress.begin("Epoch 1/2", "train", 1000, 0);
  shown();
  int draws = 0;
  for (int i = 1; i <= 1000; ++i) {
    now_ += 0.001;
    progress.update(i, {});
    const std::string text = shown();
    draws += static_cast<int>(std::count(text.begin(), text.end(), '\r'));
  }
  EXPECT_GE(draws, 9);
  EXPECT_LE(draws, 10);
  EXPECT_THAT(shown(), Not(HasSubstr("\n")));
}

TEST_F(ProgressTest, SayingSomethingKeepsTheBarIntact) {
  ::setenv("NO_COLOR", "1", 1);
  Progress progress(terminal_of(file_), 50, clock());
  progress.say("before");
  EXPECT_EQ(shown(), "before\r\n");
  progress.begin("Epoch 1/2", "train", 10, 0);
  const std::string bar = "\rEpoch 1/2 train   0% [------------------] 0/10\x1b[K";
  EXPECT_EQ(shown(), bar);
  progress.say("between");
  EXPECT_EQ(shown(), "\r\x1b[Kbetween\r\n" + bar);
  now_ += 61;
  progress.end({{"train/loss", 0.5}});
  EXPECT_EQ(shown(), "\r\x1b[KEpoch 1/2: train/loss 0.5 (1:01)\r\n");
  progress.say("after");
  EXPECT_EQ(shown(), "after\r\n");
}

TEST_F(ProgressTest, TimeLeftCountsOnlyStepsOfThisProcess) {
  ::setenv("NO_COLOR", "1", 1);
  Progress progress(terminal_of(file_), 50, clock());
  progress.begin("Epoch 1/2", "train", 100, 90);
  EXPECT_THAT(shown(), HasSubstr(" 90/100\x1b[K"));
  now_ += 60;
  progress.update(92, {});
  EXPECT_THAT(shown(), HasSubstr(" 92/100  4:00 left\x1b[K"));
}

TEST_F(ProgressTest, FollowsTheWidthAndLeavesACleanLine) {
  ::setenv("NO_COLOR", "1", 1);
  {
    Progress progress(terminal_of(file_), 50, clock());
    progress.begin("Epoch 1/2", "train", 10, 0);
    shown();
    resize(22);
    now_ += 1;
    progress.update(5, {});
    EXPECT_EQ(shown(), "\rEpoch 1/2 train  50%\x1b[K");
  }
  EXPECT_EQ(shown(), "\r\n");
}

TEST_F(ProgressTest, ColorsComeOnlyWhereWanted) {
  {
    Progress progress(terminal_of(file_), 50, clock());
    progress.begin("Epoch 1/2", "train", 10, 5);
    EXPECT_THAT(shown(), HasSubstr("[\x1b[32m=========\x1b[0m\x1b[2m---------\x1b[0m]"));
  }
  shown();
  ::setenv("TERM", "dumb", 1);
  Progress progress(terminal_of(file_), 5, clock());
  progress.begin("Epoch 1/2", "train", 10, 0);
  now_ += 1;
  for (int i = 1; i <= 7; ++i) progress.update(i, {});
  EXPECT_EQ(shown(), "Epoch 1/2 train: 5/10 (50%), 0:01 left\r\n");
}

TEST_F(ProgressTest, AStreamThatIsGoneIsNoError) {
  Progress progress({.file = -1, .control = true}, 50, clock());
  progress.begin("Epoch 1/2", "train", 10, 0);
  progress.say("nobody listens");
  progress.end(std::vector<std::pair<std::string, double>>{});
}

}  // namespace
}  // namespace headroom
