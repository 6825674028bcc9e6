// Runs that go on without the ranks that are killed (train.elastic), compared with one that nobody disturbed.
#pragma once

#include <chrono>
#include <sstream>
#include <thread>

#include "ranks_run.hpp"

namespace headroom {

class ElasticRun : public RunInRanks {
 protected:
  struct Undisturbed {
    Alone run;
    std::string metrics;
    std::vector<std::string> told;
    nlohmann::json examples;  // of the last evaluation
  };

  static std::vector<std::string> elastic(std::vector<std::string> set) {
    set.insert(set.end(), {"train.elastic=true", "checkpoint.every_steps=4", "model.options.drawn=true"});
    return set;
  }
  Undisturbed undisturbed(const std::vector<std::string>& set) const {
    Undisturbed made{.run = alone(elastic(set)), .metrics = {}, .told = {}, .examples = {}};
    made.metrics = metrics_without_times(run_folder("alone"));
    made.told = told_by(run_folder("alone"));
    made.examples = last_examples(run_folder("alone"));
    return made;
  }
  static pid_t trainer_of(const Program& program, int rank) {
    const std::string variable = "HEADROOM_RANK=" + std::to_string(rank);
    const pid_t front = child_of(program.id(), variable);
    return front > 0 ? child_of(front, variable) : -1;
  }

  // A run whose `victims` are killed while all wait at `where` ("train:14").
  Finished killed_at(const std::string& where, const std::vector<int>& victims, int processes,
                     const std::vector<std::string>& set, const std::string& out) const {
    const std::filesystem::path waiting = folder_ / ("waiting-" + out);
    Program program(words_of(processes, elastic(set), out),
                    here({"HEADROOM_TEST_PAUSE=" + where + ":" + waiting.string()}));
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(waiting); }));
    for (const int victim : victims) {
      const pid_t trainer = trainer_of(program, victim);
      EXPECT_GT(trainer, 0);
      if (trainer > 0) kill(trainer, SIGKILL);
    }
    // Each rank writes it, some perhaps only now.
    while (!program.ended()) {
      std::filesystem::remove(waiting);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return program.wait();
  }

  void expect_as(const Undisturbed& expected, const std::filesystem::path& run) const {
    expect_weights(run, expected.run.weights);
    expect_metrics(run, expected.run.summary);
    expect_rows(metrics_without_times(run), expected.metrics);
    EXPECT_EQ(told_by(run), expected.told);
    const nlohmann::json examples = last_examples(run);
    ASSERT_EQ(examples.size(), expected.examples.size());
    for (const auto& [path, value] : expected.examples.items()) {
      if (value.is_number()) {
        EXPECT_NEAR(examples.at(path).get<double>(), value.get<double>(), 1e-4) << path;
      } else {
        EXPECT_EQ(examples.at(path), value) << path;
      }
    }
    EXPECT_FALSE(std::filesystem::exists(run / "postmortem.json"));
    for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints"))
      EXPECT_EQ(entry.path().filename().string().find("tmp"), std::string::npos) << entry.path();
  }

 private:
  static nlohmann::json last_examples(const std::filesystem::path& run) {
    return read_json(run / "examples.json").at("last").flatten();
  }
  // Scalars, checkpoints and ends, with their steps: neither twice nor left out.
  static std::vector<std::string> told_by(const std::filesystem::path& run) {
    std::vector<std::string> told;
    for (const nlohmann::json& line : read_json_lines(run / "events.jsonl")) {
      const std::string kind = line.at("kind");
      if (kind == "start" || kind == "end") told.push_back(kind);
      if (kind == "scalars" || kind == "checkpoint") told.push_back(kind + " " + line.at("step").dump());
    }
    return told;
  }
  // The same rows; values up to rounding.
  static void expect_rows(const std::string& ours, const std::string& expected) {
    std::istringstream ours_lines(ours), expected_lines(expected);
    for (std::string line, other;;) {
      const bool ended = !std::getline(ours_lines, line), other_ended = !std::getline(expected_lines, other);
      ASSERT_EQ(ended, other_ended) << line << other;
      if (ended) return;
      const size_t comma = line.rfind(',');
      ASSERT_EQ(line.substr(0, comma), other.substr(0, other.rfind(',')));
      if (line.starts_with("step")) continue;
      const double value = std::stod(other.substr(other.rfind(',') + 1));
      EXPECT_NEAR(std::stod(line.substr(comma + 1)), value, 1e-8 * std::abs(value)) << line;
    }
  }
};

}  // namespace headroom
