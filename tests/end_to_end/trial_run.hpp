// Runs of the trial plugins (tests/runner/train/trial) from an experiment file, and what they leave.
#pragma once

#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.hpp"

namespace headroom {

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, std::string_view text);
nlohmann::json read_json(const std::filesystem::path& path);
std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path);

// metrics.csv without the rows that tell time.
std::string metrics_without_times(const std::filesystem::path& run);

// A folder of its own for each test, with trial.toml: 120 training and 40 validation samples, 15 windows an epoch, 3
// epochs.
class TrialRun : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // An experiment of the plugins hungry_model and hungry_source.
  void write_hungry(const std::string& file) const;

  // `headroom run trial.toml --no-plan --out OUT --set ...`; OUT is relative to the test's folder.
  std::vector<std::string> run_words(const std::vector<std::string>& set = {}, const std::string& out = "runs") const;
  Finished run(const std::vector<std::string>& set = {}, const std::string& out = "runs") const;
  Finished run_with(const std::vector<std::string>& set, const std::string& out,
                    const std::vector<std::string>& environment) const;
  Finished headroom(std::vector<std::string> words) const { return headroom_program(std::move(words), here()); }
  StartPlace here(std::vector<std::string> environment = {}) const;
  // A run whose trainer is killed (SIGKILL) where it waits, and that is resumed to its end. `pause`: the variable that
  // makes it wait, without the file's name at its end, as in "HEADROOM_TEST_PAUSE=train:22:".
  void run_killed_and_resumed(const std::vector<std::string>& set, const std::string& out,
                              const std::string& pause) const;
  // The one run folder below OUT; fails the test when there is not exactly one.
  std::filesystem::path run_folder(const std::string& out = "runs") const;
  // Those of its last checkpoint.
  std::string weights(const std::string& out) const;
  // Whether a run below OUT has written a checkpoint by now.
  bool has_saved(const std::string& out) const;

  std::filesystem::path folder_;
};

// The metrics `headroom evaluate --json` prints.
nlohmann::json evaluated(const Finished& finished);

}  // namespace headroom
