#include "trial_run.hpp"

#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdlib.h>

namespace headroom {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_text(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

nlohmann::json read_json(const fs::path& path) { return nlohmann::json::parse(read_text(path)); }

std::vector<nlohmann::json> read_json_lines(const fs::path& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(read_text(path));
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::string metrics_without_times(const fs::path& run) {
  std::string kept;
  std::istringstream stream(read_text(run / "metrics.csv"));
  for (std::string line; std::getline(stream, line);) {
    if (line.find(",samples_per_second,") == std::string::npos) kept += line + '\n';
  }
  return kept;
}

void TrialRun::SetUp() {
  std::string pattern = (fs::temp_directory_path() / "headroom-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
  write_text(folder_ / "trial.toml", R"([experiment]
name = "trial"
seed = 3
device = "cpu"
threads = 1

[model]
plugin = "trial_model"

[model.options]
dropout = 0.1
remember = true

[data]
source = "trial_source"
num_workers = 2
max_samples_for_normalize = 32
split = { train = 0.75, val = 0.25, test = 0.0, seed = 1 }

[data.options]
samples = 160

[train]
epochs = 3
batch_size = 4
gradient_accumulation_steps = 2
clip_norm = 1.0
log_every = 4
optimizer = { name = "adamw", lr = 0.01, weight_decay = 0.01 }
schedule = { name = "cosine", warmup_steps = 5 }
ema = { decay = 0.9 }

[memory]
log_every = 10
)");
}

void TrialRun::write_hungry(const std::string& file) const {
  write_text(folder_ / file, R"([experiment]
name = "trial"
device = "cpu"
threads = 1

[model]
plugin = "hungry_model"

[data]
source = "hungry_source"
split = { train = 0.75, val = 0.25, test = 0.0, seed = 1 }

[train]
optimizer = { name = "sgd", lr = 1e-4 }

[memory]
log_every = 1
)");
}

void TrialRun::TearDown() {
  std::error_code ignored;
  fs::permissions(folder_, fs::perms::owner_all, ignored);
  fs::remove_all(folder_, ignored);
}

std::vector<std::string> TrialRun::run_words(const std::vector<std::string>& set, const std::string& out) const {
  std::vector<std::string> words = {
      "run", "trial.toml", "--no-plan", "--out", out, "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR};
  for (const std::string& word : set) words.insert(words.end(), {"--set", word});
  return words;
}

Finished TrialRun::run(const std::vector<std::string>& set, const std::string& out) const {
  return headroom(run_words(set, out));
}

Finished TrialRun::run_with(const std::vector<std::string>& set, const std::string& out,
                            const std::vector<std::string>& environment) const {
  return headroom_program(run_words(set, out), here(environment));
}

StartPlace TrialRun::here(std::vector<std::string> environment) const {
  return {.folder = folder_, .environment = std::move(environment)};
}

fs::path TrialRun::run_folder(const std::string& out) const {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_ / out / "trial", error)) found.push_back(entry.path());
  EXPECT_EQ(found.size(), 1u) << "run folders below " << out;
  return found.empty() ? fs::path() : found.front();
}

void TrialRun::run_killed_and_resumed(const std::vector<std::string>& set, const std::string& out,
                                      const std::string& pause) const {
  const fs::path waiting = folder_ / "waiting";
  Program program(run_words(set, out), here({pause + waiting.string()}));
  ASSERT_TRUE(eventually([&] { return fs::exists(waiting); }));
  kill(program.trainer(), SIGKILL);
  EXPECT_EQ(program.wait().exit_code, 137);
  fs::remove(waiting);
  const Finished resumed =
      headroom({"run", "--resume", run_folder(out).string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("bit-equal to an undisturbed run"), std::string::npos) << resumed.err;
}

std::string TrialRun::weights(const std::string& out) const {
  return read_text(run_folder(out) / "checkpoints/last/model.safetensors");
}

bool TrialRun::has_saved(const std::string& out) const {
  std::error_code none_yet;
  for (const auto& run : fs::directory_iterator(folder_ / out / "trial", none_yet)) {
    if (fs::exists(run.path() / "checkpoints/last")) return true;
  }
  return false;
}

nlohmann::json evaluated(const Finished& finished) {
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const auto json = nlohmann::json::parse(finished.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << finished.out;
  return json.is_discarded() ? json : json.at("metrics");
}

}  // namespace headroom
