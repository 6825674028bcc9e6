// Sessions: what services find by the hr_host that a plugin passes.
#include "plugins/session.hpp"

#include <gtest/gtest.h>

#include "headroom/sdk/host.hpp"
#include "plugins/host.hpp"

namespace headroom {
namespace {

const hr_memory& memory_of(const hr_host* host) {
  return *static_cast<const hr_memory*>(host->get_service(host, HR_MEMORY));
}

TEST(Session, APluginHasOneHostInEach) {
  const auto one = Session::make(nullptr, nullptr), other = Session::make(nullptr, nullptr);
  const hr_host* host = one->host_for("model");
  EXPECT_EQ(one->host_for("model"), host);
  EXPECT_NE(one->host_for("source"), host);
  EXPECT_NE(other->host_for("model"), host);
  EXPECT_EQ(session_of(host), one);
  EXPECT_EQ(plugin_of(host), "model");
  EXPECT_EQ(plugin_of(other->host_for("source")), "source");
}

TEST(Session, CountsItsOwnPluginsMemory) {
  const auto one = Session::make(nullptr, nullptr), other = Session::make(nullptr, nullptr);
  memory_of(one->host_for("model")).account(one->host_for("model"), "index", 50);
  memory_of(other->host_for("model")).account(other->host_for("model"), "index", 7);
  EXPECT_EQ(one->plugin_memory().at("model/index"), 50);
  EXPECT_EQ(other->plugin_memory().at("model/index"), 7);
  EXPECT_FALSE(Session::of_process()->plugin_memory().contains("model/index"));
}

TEST(Session, SaysHowManyReadersItHasAndRemembersWhoAsked) {
  const auto run = Session::make(nullptr, nullptr, 3);
  EXPECT_FALSE(run->bounds_processes);
  EXPECT_EQ(sdk::Host(run->host_for("source")).readers_at_once(), 3U);
  EXPECT_TRUE(run->bounds_processes);
  EXPECT_EQ(sdk::Host(Session::make(nullptr, nullptr)->host_for("source")).readers_at_once(), std::nullopt);
}

// The boundary promises that a host lives as long as the process.
TEST(Session, ItsHostsOutliveIt) {
  auto one = Session::make(nullptr, nullptr);
  const hr_host* host = one->host_for("late");
  one.reset();
  EXPECT_EQ(live_session_of(host), nullptr);
  EXPECT_EQ(session_of(host), Session::of_process());
  memory_of(host).account(host, "left", 5);
  EXPECT_EQ(Session::of_process()->plugin_memory().at("late/left"), 5);
  EXPECT_EQ(plugin_of(host), "late");
}

TEST(Session, WithoutAHostItIsTheProcesss) {
  EXPECT_EQ(session_of(nullptr), Session::of_process());
  EXPECT_EQ(live_session_of(nullptr), Session::of_process());
}

}  // namespace
}  // namespace headroom
