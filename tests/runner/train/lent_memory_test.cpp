#include "train/lent_memory.hpp"

#include <gmock/gmock.h>

namespace headroom {
namespace {

using testing::ElementsAre;

constexpr int64_t mib = int64_t{1} << 20;

TEST(LentMemory, NobodyShortKeepsAll) {
  const std::vector<MemoryPart> parts = {{100 * mib, 50 * mib, false}, {100 * mib, 90 * mib, false}};
  EXPECT_THAT(lent(parts, std::vector<std::string>{"a", "a"}), ElementsAre(100 * mib, 100 * mib));
}

TEST(LentMemory, WhoIsShortHasWhatOthersDoNotUse) {
  const std::vector<MemoryPart> parts = {{100 * mib, 99 * mib, true},
                                         {100 * mib, 50 * mib, false},
                                         {100 * mib, 30 * mib, false},
                                         {100 * mib, 98 * mib, true}};
  EXPECT_THAT(lent(parts, std::vector<std::string>{"a", "a", "a", "a"}),
              ElementsAre(156 * mib, 55 * mib, 33 * mib, 156 * mib));
}

TEST(LentMemory, OtherHostsHaveMemoryOfTheirOwn) {
  const std::vector<MemoryPart> parts = {{100 * mib, 99 * mib, true}, {100 * mib, 20 * mib, false}};
  EXPECT_THAT(lent(parts, std::vector<std::string>{"a", "b"}), ElementsAre(100 * mib, 100 * mib));
}

TEST(LentMemory, ALenderThatIsShortLaterGetsItBack) {
  std::vector<MemoryPart> parts = {{100 * mib, 99 * mib, true}, {100 * mib, 50 * mib, false}};
  const std::vector<std::string> hosts = {"a", "a"};
  auto limits = lent(parts, hosts);
  EXPECT_THAT(limits, ElementsAre(145 * mib, 55 * mib));
  parts = {{limits[0], 100 * mib, false}, {limits[1], 55 * mib, true}};
  EXPECT_THAT(lent(parts, hosts), ElementsAre(110 * mib, 90 * mib));
}

TEST(LentMemory, WithoutALimitNothingIsLent) {
  const std::vector<MemoryPart> parts = {{0, 99 * mib, true}, {0, 20 * mib, false}};
  EXPECT_THAT(lent(parts, std::vector<std::string>{"a", "a"}), ElementsAre(0, 0));
  const std::vector<MemoryPart> one_has = {{0, 99 * mib, true}, {100 * mib, 20 * mib, false}};
  EXPECT_THAT(lent(one_has, std::vector<std::string>{"a", "a"}), ElementsAre(0, 100 * mib));
}

TEST(LentMemory, TheSumOverAHostNeverGrows) {
  const std::vector<MemoryPart> parts = {{100 * mib, 99 * mib, true},
                                         {100 * mib, 99 * mib, true},
                                         {100 * mib, 99 * mib, true},
                                         {101 * mib + 1, 33 * mib + 7, false}};
  const auto limits = lent(parts, std::vector<std::string>{"a", "a", "a", "a"});
  EXPECT_LE(limits[0] + limits[1] + limits[2] + limits[3], 401 * mib + 1);
  EXPECT_GE(limits[0] + limits[1] + limits[2] + limits[3], 401 * mib - 2);
}

}  // namespace
}  // namespace headroom
