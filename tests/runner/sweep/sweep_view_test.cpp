#include "sweep/sweep_view.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sstream>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace headroom {
namespace {

using testing::ElementsAre;

const std::vector<RunningRow> rows = {
    {"001_batch_size=8_accumulation=4", "running", "epoch 1, step 12", "103.4", "98.1 MiB"},
    {"002_\u00e4\u00e4\u00e4", "planning", "", "", ""},
};

TEST(SweepView, AWideTableShowsEverything) {
  EXPECT_THAT(running_table(rows, 100),
              ElementsAre("trial                            state     progress          samples/s  memory",
                          "001_batch_size=8_accumulation=4  running   epoch 1, step 12  103.4      98.1 MiB",
                          "002_\u00e4\u00e4\u00e4                          planning"));
}

TEST(SweepView, ANarrowOneLeavesOutTheLeastTelling) {
  EXPECT_THAT(running_table(rows, 59), ElementsAre("trial                  state     progress          memory",
                                                   "001_batch_size=8_a...  running   epoch 1, step 12  98.1 MiB",
                                                   "002_\u00e4\u00e4\u00e4                planning"));
  EXPECT_THAT(running_table(rows, 36), ElementsAre("trial               progress",
                                                   "001_batch_size=...  epoch 1, step 12", "002_\u00e4\u00e4\u00e4"));
}

TEST(SweepView, NoLineIsWiderThanTheTerminal) {
  for (size_t columns = 1; columns < 120; ++columns) {
    for (const std::string& line : running_table(rows, columns)) {
      EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; }),
                static_cast<std::ptrdiff_t>(columns));
    }
  }
}

// A full line would wrap, and its second half stay on the screen.
TEST(SweepView, TheLastColumnStaysFreeOnANarrowScreen) {
  const int screen = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (screen < 0) GTEST_SKIP() << "no pseudo-terminal here";
  struct winsize size {};
  size.ws_col = 20;
  ASSERT_EQ(::ioctl(screen, TIOCSWINSZ, &size), 0);
  testing::internal::CaptureStderr();
  SweepView({.file = screen, .control = true}).show(rows, "0 of 2 done, and 1 paused");
  std::istringstream shown(testing::internal::GetCapturedStderr());
  ::close(screen);
  size_t lines = 0;
  for (std::string line; std::getline(shown, line) && !line.starts_with('\033'); ++lines) EXPECT_LT(line.size(), 20u);
  EXPECT_EQ(lines, 4u);
}

}  // namespace
}  // namespace headroom
