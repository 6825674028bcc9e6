#include "report/text_table.hpp"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(TextTable, FiguresStandBelowEachOther) {
  TextTable table({"metric", "a", "run"}, 1);
  table.add({"loss", "0.25", "runs/a"});
  table.add({"größe", "1", "runs/b c"});
  EXPECT_EQ(table.text(),
            "metric     a  run\n"
            "loss    0.25  runs/a\n"
            "größe      1  runs/b c\n");
}

// As those of record.events_to, and of names in the folders of strangers.
TEST(TextTable, ALineBreakInACellEndsNoRow) {
  TextTable table({"key", "value"}, 1);
  table.add({"a\tb", "python x.py\n\x1b[2J"});
  EXPECT_EQ(table.text(), "key  value\na b  python x.py  [2J\n");
}

}  // namespace
}  // namespace headroom
