#include "sweep/trial_job.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "../config/files.hpp"
#include "memory/child_process.hpp"
#include "record/numbers.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// A trial whose folder has a name that a shell would take apart.
class TrialJob : public testing::Test {
 protected:
  // What the job runs: its words, one a line, without the first one of the log.
  std::vector<std::string> words_of_job() {
    const fs::path program = sweep_.write("a program", "#!/bin/sh\nfor word; do echo \"$word\"; done\n");
    fs::permissions(program, fs::perms::owner_all);
    const fs::path script = sweep_.write(
        "job.sh", job_script(program, folder_, {.begin = {"run", "trial.toml"}, .both = {"--set", "a='b c'"}}));
    const fs::path out = sweep_.path() / "out";
    wait_for(start_child({"/bin/sh", "-c", "sh \"$0\" >\"$1\"", script.string(), out.string()}, {}));
    std::vector<std::string> words;
    std::ifstream lines(out);
    for (std::string line; std::getline(lines, line);) words.push_back(line);
    EXPECT_FALSE(words.empty());
    if (words.empty()) return words;
    EXPECT_TRUE(words.front().starts_with("== ") && seconds_of(words.front().substr(3))) << words.front();
    words.erase(words.begin());
    return words;
  }

  TemporaryFolder sweep_;
  const TrialFolder folder_{sweep_.path(), "001_path='$HOME'"};
};

using Words = std::vector<std::string>;

TEST_F(TrialJob, TheFirstTimeTheRunBegins) {
  EXPECT_EQ(words_of_job(), (Words{"run", "trial.toml", "--set", "a='b c'"}));
}

TEST_F(TrialJob, StartedAgainItContinuesTheNewestRun) {
  const auto run = [&](const std::string& name, int age_hours) {
    const fs::path file = sweep_.write("trials/001_path='$HOME'/x y/" + name + "/experiment.toml", "");
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(age_hours));
    return file.parent_path().string();
  };
  run("20260103-000000-a", 3);
  const std::string newest = run("20260101-000000-b", 1);
  run("20260102-000000-c", 2);
  EXPECT_EQ(folder_.newest_run(), newest);
  EXPECT_EQ(words_of_job(), (Words{"run", "--resume", newest, "--set", "a='b c'"}));
}

}  // namespace
}  // namespace headroom
