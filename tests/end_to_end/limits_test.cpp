// `headroom limits` as a user and a script meet it.
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "memory/reservations.hpp"
#include "program.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t gib = int64_t{1} << 30;

class LimitsCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "headroom-limits-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    setenv("HEADROOM_RESERVATIONS", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("HEADROOM_RESERVATIONS");
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  Finished limits(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), "limits");
    return headroom_program(words, {.folder = folder_, .environment = {"HEADROOM_RESERVATIONS=" + folder_.string()}});
  }
  Json limits_as_json(std::vector<std::string> words = {}) const {
    words.emplace_back("--json");
    const Finished finished = limits(words);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return Json::parse(finished.out);
  }
  static Json room_named(const Json& limits, const std::string& name) {
    for (const Json& room : limits.at("rooms")) {
      if (room.at("name") == name) return room;
    }
    ADD_FAILURE() << "no " << name << " in " << limits.dump();
    return {};
  }
  fs::path folder_;
};

TEST_F(LimitsCommand, AutoFollowsFromTheRooms) {
  const Json found = limits_as_json();
  const Json system = room_named(found, "system");
  EXPECT_GT(system.at("bound_bytes"), gib / 4);
  EXPECT_LE(system.at("room_bytes"), system.at("bound_bytes"));
  EXPECT_TRUE(found.at("other_runs").empty());
  int64_t smallest = INT64_MAX;
  for (const Json& room : found.at("rooms")) smallest = std::min<int64_t>(smallest, room.at("room_bytes"));
  EXPECT_NEAR(found.at("limit").at("bytes").get<double>(), 0.9 * static_cast<double>(smallest), 2);
  EXPECT_EQ(found.at("limit").at("wanted"), "auto");
  EXPECT_NE(found.at("limit").at("rule").get<std::string>().find("0.9 of the "), std::string::npos);
}

TEST_F(LimitsCommand, ResourceLimitsAreRoomsOfTheirOwn) {
  rlimit before{};
  getrlimit(RLIMIT_DATA, &before);
  const rlimit large{.rlim_cur = rlim_t{1} << 50, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &large), 0);
  const Json found = limits_as_json();
  setrlimit(RLIMIT_DATA, &before);
  EXPECT_EQ(room_named(found, "RLIMIT_DATA").at("bound_bytes"), int64_t{1} << 50);
}

TEST_F(LimitsCommand, OtherRunsAreShownAndCounted) {
  const Reservation reservation = Reservation::claim("night run", int64_t{1} << 45);
  const Json found = limits_as_json();
  ASSERT_EQ(found.at("other_runs").size(), 1u);
  const Json run = found.at("other_runs").at(0);
  EXPECT_EQ(run.at("name"), "night run");
  EXPECT_EQ(run.at("pid"), getpid());
  EXPECT_EQ(run.at("reserved_bytes"), int64_t{1} << 45);
  EXPECT_EQ(run.at("state"), "running");
  const Json system = room_named(found, "system");
  EXPECT_EQ(system.at("claimed_bytes"), (int64_t{1} << 45) - run.at("held_bytes").get<int64_t>());
  EXPECT_EQ(system.at("reserved_bytes"), system.at("bound_bytes")) << "more than all of it cannot be set aside";
  EXPECT_EQ(found.at("limit").at("bytes"), 1) << "more than there is";
  const Finished text = limits();
  EXPECT_NE(text.out.find("night run"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("reserved by other runs"), std::string::npos) << text.out;
}

TEST_F(LimitsCommand, OtherLimitsCanBeAskedAbout) {
  const Json told = limits_as_json({"--limit", "1.5 GiB"}).at("limit");
  EXPECT_EQ(told.at("bytes"), 3 * gib / 2);
  EXPECT_EQ(told.at("wanted"), "1536 MiB");
  EXPECT_EQ(limits_as_json({"--limit", "off"}).at("limit").at("bytes"), nullptr);
  const Json half = limits_as_json({"--limit", "50 %"});
  int64_t smallest = INT64_MAX;
  for (const Json& room : half.at("rooms")) smallest = std::min<int64_t>(smallest, room.at("bound_bytes"));
  EXPECT_EQ(half.at("limit").at("bytes"), smallest / 2);
  const Finished wrong = limits({"--limit", "plenty"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("--limit plenty: expected auto, off, "), std::string::npos) << wrong.err;
  EXPECT_EQ(wrong.out, "");
}

TEST_F(LimitsCommand, TheTableNamesTheRule) {
  const Finished text = limits();
  EXPECT_EQ(text.exit_code, 0);
  for (const char* part :
       {"  system\n", "swap: ", "other runs: none\n", "memory.limit = \"auto\" gives ", "\n  0.9 of the "}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " in\n" << text.out;
  }
  EXPECT_EQ(limits({"--help"}).exit_code, 0);
}

}  // namespace
}  // namespace headroom
