// The examples that read HDF5 files: examples/transformer and examples/unet learn, and a run that goes on ends as one
// that was not stopped.
#include <cmath>
#include <random>
#include <sstream>

#include "../runner/arrays/h5_files.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class Examples : public TrialRun {
 protected:
  void take_experiment(const std::string& name) {
    fs::copy_file(fs::path(HEADROOM_SOURCE_DIR) / "examples" / name / (name + ".toml"), folder_ / (name + ".toml"));
  }
  Finished example(std::vector<std::string> words, const std::vector<std::string>& set = {}) const {
    words.insert(words.end(), {"--plugin-dir", HEADROOM_BUILD_DIR "/examples"});
    for (const std::string& one : set) words.insert(words.end(), {"--set", one});
    return headroom(std::move(words));
  }
  // Its validation losses, an epoch each.
  std::vector<double> losses() const {
    std::vector<double> found;
    std::istringstream rows(read_text(run_folder() / "metrics.csv"));
    for (std::string row; std::getline(rows, row);) {
      if (row.find(",val,loss,") != std::string::npos) found.push_back(std::stod(row.substr(row.rfind(',') + 1)));
    }
    return found;
  }
  // Again from the checkpoint of step 14.
  void expect_same_end() const {
    const std::string step = "step-00000014";
    const std::string metrics = metrics_without_times(run_folder());
    const fs::path last = run_folder() / "checkpoints/last";
    const std::string model = read_text(last / "model.safetensors"), state = read_text(last / "state.safetensors");
    // As if it had been killed there: what was saved later is gone.
    std::vector<fs::path> later;
    for (const auto& entry : fs::directory_iterator(run_folder() / "checkpoints")) {
      if (entry.is_symlink() || entry.path().filename().string() > step) later.push_back(entry.path());
    }
    for (const fs::path& one : later) fs::remove_all(one);
    const Finished resumed = example({"run", "--resume", run_folder().string()});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_NE(resumed.err.find("resumed at step 14, bit-equal"), std::string::npos) << resumed.err;
    EXPECT_TRUE(read_text(last / "model.safetensors") == model);
    EXPECT_TRUE(read_text(last / "state.safetensors") == state);
    EXPECT_EQ(metrics_without_times(run_folder()), metrics);
  }

  const std::vector<std::string> small = {"experiment.name=trial", "experiment.device=cpu", "experiment.threads=1",
                                          "checkpoint.every_steps=7", "checkpoint.keep=20"};
};

// Documents that count upwards by one of three steps: what comes next follows from what came before.
void write_text_file(const fs::path& path) {
  std::vector<uint8_t> tokens;
  std::vector<int64_t> ends;
  for (size_t document = 0; document < 24; ++document) {
    for (size_t i = 0; i < 90 + document; ++i) tokens.push_back(static_cast<uint8_t>((i * (1 + document % 3)) % 16));
    ends.push_back(static_cast<int64_t>(tokens.size()));
  }
  const Hdf5Lock lock;
  const Handle file = create_file(path);
  write_dataset(file.get(), "tokens", H5T_STD_U8LE, {tokens.size()}, tokens);
  write_dataset(file.get(), "document_ends", H5T_STD_I64LE, {ends.size()}, ends);
}

TEST_F(Examples, TheTransformerLearnsTokensAndGoesOn) {
  take_experiment("transformer");
  write_text_file(folder_ / "text.h5");
  std::vector<std::string> set = small;
  set.insert(set.end(), {"model.options.vocabulary=16", "model.options.width=32", "data.options.window_size=25",
                         "data.options.stride=12", "train.epochs=4"});
  const Finished finished = example({"run", "transformer.toml", "--no-plan", "--out", "runs"}, set);
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const std::vector<double> loss = losses();
  ASSERT_EQ(loss.size(), 4u);
  EXPECT_LT(loss.back(), 0.5 * loss.front());
  EXPECT_LT(loss.back(), 0.5 * std::log(16.0)) << "no better than guessing";
  expect_same_end();
}

// Without data, of made-up fields.
TEST_F(Examples, TheirModelsPassTheChecks) {
  for (const char* name : {"transformer", "unet"}) {
    const Finished finished =
        headroom({"plugins", "check", std::string(HEADROOM_BUILD_DIR "/examples/") + name + ".so"});
    EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  }
}

void write_discs(const fs::path& path, size_t pictures) {
  constexpr size_t side = 16;
  std::mt19937 generator(3);
  std::vector<uint8_t> images, masks;
  for (size_t i = 0; i < pictures; ++i) {
    const int x = 4 + static_cast<int>(generator() % 8), y = 4 + static_cast<int>(generator() % 8);
    for (int row = 0; row < static_cast<int>(side); ++row) {
      for (int column = 0; column < static_cast<int>(side); ++column) {
        const bool inside = (row - y) * (row - y) + (column - x) * (column - x) < 12;
        masks.push_back(inside ? 1 : 0);
        images.push_back(static_cast<uint8_t>((inside ? 80 : 0) + generator() % 100));
      }
    }
  }
  const Hdf5Lock lock;
  const Handle file = create_file(path);
  write_dataset(file.get(), "images", H5T_STD_U8LE, {pictures, side, side, 1}, images, {8, side, side, 1}, 1);
  write_dataset(file.get(), "masks", H5T_STD_U8LE, {pictures, side, side}, masks);
}

TEST_F(Examples, TheUNetLearnsMasksAndGoesOn) {
  take_experiment("unet");
  write_discs(folder_ / "discs.h5", 100);
  std::vector<std::string> set = small;
  set.insert(set.end(),
             {"model.options.channels=4", "train.epochs=3", "train.micro_batch=2",
              R"(data.options.splits=[{ name = "train", rows = [0, 80] }, { name = "val", rows = [80, 100] }])"});
  const Finished finished = example({"run", "unet.toml", "--no-plan", "--out", "runs"}, set);
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("train.micro_batch = 2 is not used: model 'unet' couples the samples of a batch"),
            std::string::npos)
      << finished.err;
  const std::vector<double> loss = losses();
  ASSERT_EQ(loss.size(), 3u);
  EXPECT_LT(loss.back(), loss.front());
  const nlohmann::json summary = read_json(run_folder() / "summary.json");
  EXPECT_EQ(summary.at("classes").at("val/scores").at("names"), nlohmann::json::parse(R"(["ground", "disc"])"));
  EXPECT_EQ(summary.at("best").at("metric"), "val/macro_f1");
  expect_same_end();
}

TEST_F(Examples, ValidateCountsTheClassesOfTheUNetsPixels) {
  take_experiment("unet");
  write_discs(folder_ / "discs.h5", 200);
  const Finished valid = example({"validate", "unet.toml"});
  EXPECT_EQ(valid.exit_code, 0) << valid.err;
  EXPECT_NE(valid.out.find("mask, train: ground "), std::string::npos) << valid.out;
}

}  // namespace
}  // namespace headroom
