#include "sweep/trial_starts.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <sstream>
#include <stdlib.h>

#include "../config/files.hpp"
#include "../memory/child.hpp"
#include "error.hpp"
#include "memory/black_box.hpp"
#include "memory/child_process.hpp"
#include "memory/reservations.hpp"
#include "sweep/trial_process.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// Trials of a sweep that a script stands in for.
class TrialStartsTest : public testing::Test {
 protected:
  static constexpr int64_t mib = 1 << 20;

  void SetUp() override { setenv("HEADROOM_RESERVATIONS", (sweep_.path() / "reservations").c_str(), 1); }
  void TearDown() override { unsetenv("HEADROOM_RESERVATIONS"); }

  // `lines` of the trials' experiments; what the script does in place of `headroom`.
  void sweep_of(size_t number, const std::string& lines, const std::string& script) {
    program_ = sweep_.write("program", "#!/bin/sh\n" + script + "\n");
    fs::permissions(program_, fs::perms::owner_all);
    plan_.jobs = static_cast<int>(number);
    for (size_t i = 1; i <= number; ++i) {
      plan_.trials.push_back({.id = "00" + std::to_string(i), .settings = {}, .choices = {}});
      sweep_.write("trials/" + plan_.trials.back().id + "/trial.toml", required_keys + lines);
    }
  }
  void begin() {
    for (const Trial& trial : plan_.trials) entries_.emplace_back(sweep_.path(), trial).settle();
    starts_.emplace(program_, plan_, entries_, rungs_, view_);
  }
  // The log of the only trial, whose plan gave it `limit_bytes`.
  std::string log_of_one(const std::string& lines, int64_t limit_bytes) {
    sweep_of(1, lines, "exit 0");
    TrialRecord record;
    record.limit_bytes = limit_bytes;
    TrialFolder(sweep_.path(), "001").write(record);
    begin();
    starts_->start_what_fits();
    EXPECT_EQ(entries_[0].state(), TrialState::running);
    wait_for(entries_[0].child);
    remove_trial_cgroup(entries_[0].cgroup);
    std::stringstream log;
    log << std::ifstream(entries_[0].folder.log()).rdbuf();
    return log.str();
  }
  // What the sweep does with the end of a plan.
  std::optional<TrialEnd> take_plan(TrialEntry& entry) {
    entry.exit_code = wait_for(entry.child).exit_code();
    entry.child = -1;
    return starts_->take_plan(entry, /*is_stopping=*/false);
  }

  TemporaryFolder sweep_;
  fs::path program_;
  SweepPlan plan_;
  SweepView view_{Terminal{}};
  std::vector<TrialEntry> entries_;
  SweepRungs rungs_{plan_.halving, entries_};
  std::optional<TrialStarts> starts_;
};

TEST_F(TrialStartsTest, APlanThatRanOutOfMemoryBesideOthersIsMadeAgainAlone) {
  sweep_of(2, "memory.limit = \"1 GiB\"\n", "exit 5");  // a probe for which others have left too little
  begin();
  TrialEntry &runs = entries_[0], &planned = entries_[1];
  runs.state() = TrialState::running;
  starts_->start_what_fits();
  ASSERT_EQ(planned.state(), TrialState::planning);
  EXPECT_FALSE(take_plan(planned));
  EXPECT_EQ(planned.state(), TrialState::waiting) << "it may fit once the others have ended";
  EXPECT_FALSE(planned.folder.record().decided);
  starts_->start_what_fits();
  EXPECT_EQ(planned.state(), TrialState::waiting) << "the others hold as much as before";
  runs.state() = TrialState::finished;
  starts_->start_what_fits();
  ASSERT_EQ(planned.state(), TrialState::planning);
  EXPECT_FALSE(take_plan(planned));
  EXPECT_EQ(planned.state(), TrialState::infeasible);
}

// A run that is not of the sweep.
void reserve_everything(Child& self) {
  const Reservation all = Reservation::claim("other", int64_t{1} << 50);
  self.tell();
  self.hear();
}

TEST_F(TrialStartsTest, APlanThatRanOutOfMemoryBesideOtherRunsIsMadeAgainWhenTheyHaveEnded) {
  sweep_of(1, "", "exit 5");
  begin();
  TrialEntry& entry = entries_[0];
  Child other(reserve_everything);
  other.hear();
  for (int round = 0; round < 3; ++round) {
    starts_->start_what_fits();
    if (round > 0) {
      EXPECT_EQ(entry.state(), TrialState::waiting) << "others hold as much as before";
      continue;
    }
    ASSERT_EQ(entry.state(), TrialState::planning);
    EXPECT_FALSE(take_plan(entry));
    EXPECT_FALSE(entry.folder.record().decided) << "it may fit once they have ended";
  }
  other.kill();
  starts_->start_what_fits();
  ASSERT_EQ(entry.state(), TrialState::planning);
  EXPECT_FALSE(take_plan(entry));
  EXPECT_EQ(entry.state(), TrialState::infeasible);
}

TEST_F(TrialStartsTest, ATrialThatFoundNoRoomBesideOtherRunsStartsAgainWhenTheyHaveEnded) {
  sweep_of(1, "", "exit 5");
  TrialRecord record;
  record.limit_bytes = 10 * mib;
  TrialFolder(sweep_.path(), "001").write(record);
  begin();
  TrialEntry& entry = entries_[0];
  const auto run = [&] {
    starts_->start_what_fits();
    ASSERT_EQ(entry.state(), TrialState::running);
    wait_for(entry.child);
    entry.child = -1;
    entry.state() = TrialState::waiting;
  };
  Child other(reserve_everything);
  other.hear();
  run();
  EXPECT_TRUE(starts_->waits_for_other_runs(entry));
  starts_->start_what_fits();
  EXPECT_EQ(entry.state(), TrialState::waiting);
  other.kill();
  run();
  EXPECT_FALSE(starts_->waits_for_other_runs(entry)) << "nobody held what it lacked";
  remove_trial_cgroup(entry.cgroup);
}

TEST_F(TrialStartsTest, AloneItKeepsToWhatIsFree) {
  const std::string log = log_of_one("", int64_t{1} << 50);  // planned when there was more
  EXPECT_THAT(log, HasSubstr(" --set memory.limit=auto"));
  EXPECT_THAT(log, Not(HasSubstr(std::to_string(int64_t{1} << 50))));
}

TEST_F(TrialStartsTest, ALimitThatIsWrittenStays) {
  const std::string log = log_of_one("memory.limit = \"1024 TiB\"\n", int64_t{1} << 50);
  EXPECT_THAT(log, HasSubstr(" --set memory.limit=" + std::to_string(int64_t{1} << 50)));
}

TEST_F(TrialStartsTest, ARunThatGoesOnCountsAsFarAsItsLimit) {
  sweep_of(1, "", "exit 0");
  const std::string run = "trials/001/x/20260101-000000-a/";
  sweep_.write(run + "experiment.toml", "");
  begin();
  TrialEntry& entry = entries_[0];
  entry.result.record.limit_bytes = 1000 * mib;
  entry.began = fs::file_time_type::clock::now() + std::chrono::hours(1);
  EXPECT_EQ(entry.unreserved_bytes(), 1000 * mib) << "it has not begun";
  entry.began = fs::file_time_type::clock::now() - std::chrono::hours(1);
  EXPECT_EQ(entry.unreserved_bytes(), 1000 * mib) << "without a plan it has reserved nothing";
  BlackBox box(sweep_.path() / run / black_box_file);
  BlackBoxRecord record;
  record.held_bytes = 300 * mib;
  box.push(record);
  EXPECT_EQ(entry.unreserved_bytes(), 700 * mib);
  const std::string reserved = std::to_string(900 * mib);
  sweep_.write(run + "checkpoints/last/checkpoint.json", "{\"position\": {\"reserved_bytes\": " + reserved + "}}");
  EXPECT_EQ(entry.unreserved_bytes(), 100 * mib) << "what it has reserved counts there";
  entry.result.run.folder.clear();
  EXPECT_EQ(entry.unreserved_bytes(), 0) << "a first attempt reserves what its plan says";
}

}  // namespace
}  // namespace headroom
