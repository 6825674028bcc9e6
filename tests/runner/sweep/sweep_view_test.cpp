#include "sweep/sweep_view.hpp"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace headroom
