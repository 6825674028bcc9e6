// Who hears of the plugins' calls, and when.
#include <gtest/gtest.h>
#include <thread>

#include "memory/crash_site.hpp"
#include "profile/plugin_calls.hpp"

namespace headroom {
namespace {

void call(const char* plugin, const char* entry) { const PluginCall here(plugin, entry); }

TEST(PluginCallTimes, TellsThoseOfTheStepsThreadFromThoseBesideIt) {
  PluginCallTimes times(nullptr);
  call("model", "create");  // before anything counts
  times.count(true);
  call("model", "step");
  call("model", "step");
  std::thread([] { call("source", "read"); }).join();
  times.count(false);
  call("model", "step");
  const std::vector<PluginCallTime> all = times.by_time();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].plugin + " " + all[0].entry, "model step");
  EXPECT_TRUE(all[0].in_step);
  EXPECT_EQ(all[0].calls, 2);
  EXPECT_GE(all[0].ns, 0);
  EXPECT_EQ(all[1].plugin + " " + all[1].entry, "source read");
  EXPECT_FALSE(all[1].in_step);
  EXPECT_EQ(all[1].calls, 1);
}

TEST(PluginCallTimes, ACallThatBeganBeforeIsNotTimed) {
  {
    const PluginCall outer("model", "create");
    PluginCallTimes times(nullptr);
    times.count(true);
    { const PluginCall inner("source", "open"); }
    const std::vector<PluginCallTime> all = times.by_time();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].entry, "open");
  }
  // With nobody left to hear, a call ends as ever.
  const uint64_t changes = PluginCall::changes();
  call("model", "destroy");
  EXPECT_EQ(PluginCall::changes(), changes + 2);
}

}  // namespace
}  // namespace headroom
