// Runs of the trial plugins in several processes, compared with the run of one.
#pragma once

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>

#include "record/safetensors.hpp"
#include "trial_run.hpp"

namespace headroom {

using Tensors = std::map<std::string, std::vector<double>>;

// All that a run in fp64 trains, and its buffers in fp64.
inline Tensors floating_weights_of(const std::filesystem::path& run) {
  const SafetensorsFile file(run / "checkpoints/last/model.safetensors");
  Tensors weights;
  for (const TensorBytes& tensor : file.tensors()) {
    if (tensor.dtype.bits != 64 || tensor.dtype.code != kDLFloat) continue;
    std::vector<double>& values = weights[tensor.name];
    values.resize(tensor.data.size() / sizeof(double));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  }
  return weights;
}

// Of the trial model, without its buffer.
inline Tensors weights_of(const std::filesystem::path& run) {
  Tensors weights = floating_weights_of(run);
  weights.erase("seen");
  EXPECT_EQ(weights.size(), 4u);
  return weights;
}

inline double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

inline std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> values = a;
  for (size_t i = 0; i < values.size(); ++i) values[i] -= b.at(i);
  return values;
}

class RunInRanks : public TrialRun {
 protected:
  // Of a run of one process.
  struct Alone {
    Tensors weights;
    nlohmann::json summary;
    size_t events;
  };

  std::vector<std::string> words_of(int processes, std::vector<std::string> set, const std::string& out) const {
    // A window of 10 samples, which 3 and 4 do not divide.
    static const std::vector<std::string> exact = {"train.precision=fp64", "train.batch_size=5", "train.epochs=2",
                                                   "model.options.remember=false", "model.options.count_calls=false"};
    set.insert(set.begin(), exact.begin(), exact.end());
    std::vector<std::string> words = run_words(set, out);
    words.insert(words.end(), {"--nproc", std::to_string(processes)});
    return words;
  }
  std::filesystem::path finished(int processes, const std::vector<std::string>& set, const std::string& out) const {
    const Finished end = headroom(words_of(processes, set, out));
    EXPECT_EQ(end.exit_code, 0) << processes << " processes: " << end.err;
    return run_folder(out);
  }
  Alone alone(const std::vector<std::string>& set) const {
    const std::filesystem::path run = finished(1, set, "alone");
    return {weights_of(run), read_json(run / "summary.json"), read_json_lines(run / "events.jsonl").size()};
  }
  // Without further settings; the same for all tests.
  const Alone& alone() const {
    static const Alone made = alone({});
    return made;
  }
  Finished resumed(const std::filesystem::path& run, int processes) const {
    return headroom({"run", "--resume", run.string(), "--nproc", std::to_string(processes), "--plugin-dir",
                     HEADROOM_TEST_PLUGIN_DIR});
  }
  // Of what `--nproc` started, or of a front that a test started.
  static pid_t child_of(pid_t parent, const std::string& with_variable) {
    std::ifstream children("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
    for (pid_t child = -1; children >> child;) {
      const std::string variables = '\0' + read_text("/proc/" + std::to_string(child) + "/environ");
      if (variables.find('\0' + with_variable + '\0') != std::string::npos) return child;
    }
    return -1;
  }

  static void expect_weights(const std::filesystem::path& run, const Tensors& expected) {
    for (const auto& [name, values] : weights_of(run))
      EXPECT_LE(largest(difference(values, expected.at(name))), 1e-8 * largest(expected.at(name))) << name;
  }
  static void expect_metrics(const std::filesystem::path& run, const nlohmann::json& expected) {
    const nlohmann::json summary = read_json(run / "summary.json");
    for (const char* key : {"steps", "epochs", "skipped_windows", "identity"})
      EXPECT_EQ(summary.at(key), expected.at(key));
    EXPECT_EQ(summary.at("metrics").size(), expected.at("metrics").size());
    for (const auto& [name, value] : expected.at("metrics").items())
      EXPECT_NEAR(summary.at("metrics").at(name), value, 1e-8 * std::abs(value.get<double>())) << name;
  }
};

}  // namespace headroom
