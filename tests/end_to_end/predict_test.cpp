// `headroom predict`: step by step on a made episode, sample by sample where nobody offers headroom.predict/1.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "../runner/record/tensor_values.hpp"
#include "small_network.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kPolicy = R"(
[experiment]
name = "trial"
device = "cpu"
threads = 1
[model]
plugin = "act_policy"
[model.options]
chunk_size = 5
hidden_dim = 16
dim_feedforward = 24
nheads = 4
enc_layers = 1
dec_layers = 1
backbone_widths = [4, 6, 8, 10]
[data]
source = "dual_arm_hdf5"
num_workers = 0
[data.options]
path = "made"
samples_per_episode = 4
[data.synth]
episodes = 3
steps = 17
cameras = 2
height = 24
width = 32
[train]
epochs = 1
batch_size = 4
)";

constexpr const char* kEmgData = R"(
[data]
source = "emg_hdf5"
num_workers = 0
max_samples_for_normalize = 20
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
path = "made"
window_size = 200
stride = 100
splits = "none"
[data.synth]
sessions = 4
seconds = 1.0
[train]
max_steps = 2
batch_size = 4
)";

double mean_error(const std::vector<double>& values, const std::vector<double>& recorded, size_t channel) {
  double sum = 0.0;
  for (size_t i = channel; i < values.size(); i += 14) sum += std::abs(values[i] - recorded[i]);
  return sum / static_cast<double>(values.size() / 14);
}

class Predict : public TrialRun {
 protected:
  void train(const std::string& text) {
    write_text(folder_ / "here.toml", text);
    const Finished finished = headroom({"run", "here.toml", "--no-plan", "--out", "runs"});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
  }
  Finished predict(const std::string& input, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"predict", run_folder().string(), "--input", input});
    return headroom(std::move(more));
  }
  std::string refusal(const std::string& input, int exit_code, std::vector<std::string> more = {}) const {
    const Finished finished = predict(input, std::move(more));
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
    return finished.err;
  }
};

TEST_F(Predict, EveryStepOfAnEpisode) {
  train(kPolicy);
  const Finished finished = predict("made/episode_1.hdf5", {"--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const json told = json::parse(finished.out);
  EXPECT_EQ(told.at("steps"), 17);
  EXPECT_EQ(told.at("horizon"), 5);
  EXPECT_EQ(told.at("mean_absolute_error").size(), 14u);
  EXPECT_EQ(told.at("mean_absolute_error")[13].at("name"), "right_gripper");
  EXPECT_EQ(told.at("mean_absolute_error")[13].at("unit"), "opening");

  const fs::path out = run_folder() / "predictions/episode_1";
  EXPECT_EQ(told.at("out"), fs::absolute(out / "prediction.html").string());
  const SafetensorsFile file(out / "predictions.safetensors");
  const auto recorded = values<double>(file, "recorded"), open_loop = values<double>(file, "open_loop"),
             ensembled = values<double>(file, "ensembled");
  ASSERT_EQ(recorded.size(), 17u * 14u);
  ASSERT_EQ(file.find("recorded")->shape, (std::vector<int64_t>{17, 14}));
  for (const size_t joint : {0, 6, 13}) {
    EXPECT_NEAR(told.at("mean_absolute_error")[joint].at("open_loop").get<double>(),
                mean_error(open_loop, recorded, joint), 1e-12);
    EXPECT_NEAR(told.at("mean_absolute_error")[joint].at("ensembled").get<double>(),
                mean_error(ensembled, recorded, joint), 1e-12);
    EXPECT_EQ(open_loop[joint], ensembled[joint]) << "one prediction is made for the first step";
  }
  EXPECT_NE(open_loop, ensembled);
  const std::string page = read_text(out / "prediction.html");
  for (const char* text : {"right_gripper", "hold last", "ensembled", "prefers-color-scheme: dark", "viewport"})
    EXPECT_NE(page.find(text), std::string::npos) << text;

  // Batches and micro-batches change rounding at most.
  const Finished smaller = predict("made/episode_1.hdf5", {"--json", "--out", "again", "--set", "train.batch_size=3",
                                                           "--set", "train.micro_batch=2"});
  ASSERT_EQ(smaller.exit_code, 0) << smaller.err;
  const SafetensorsFile again(folder_ / "again/predictions.safetensors");
  EXPECT_EQ(values<double>(again, "recorded"), recorded);
  const auto same = values<double>(again, "ensembled");
  ASSERT_EQ(same.size(), ensembled.size());
  for (size_t i = 0; i < same.size(); ++i) EXPECT_NEAR(same[i], ensembled[i], 1e-5);

  const Finished table = predict("made/episode_1.hdf5", {"--checkpoint", "last"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("mean absolute error"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("standard deviations"), std::string::npos) << table.out;
}

TEST_F(Predict, WhatItCannotPredictIsSaidInASentence) {
  train(kPolicy);
  EXPECT_NE(refusal("nowhere.hdf5", 2).find("[predict] --input nowhere.hdf5: there is no such file"),
            std::string::npos);
  ASSERT_EQ(
      headroom({"data", "synth", "here.toml", "--set", "data.options.path=one_camera", "--set", "data.synth.cameras=1"})
          .exit_code,
      0);
  EXPECT_NE(refusal("one_camera/episode_0.hdf5", 4).find("has no camera"), std::string::npos);
  EXPECT_NE(refusal("made", 4).find("made"), std::string::npos);
  EXPECT_NE(refusal("made/episode_0.hdf5", 2, {"--checkpoint", "nowhere"}).find("nowhere"), std::string::npos);
  EXPECT_EQ(predict("made/episode_0.hdf5", {"--splat"}).exit_code, 2);
  const Finished no_run = headroom({"predict", "made", "--input", "made/episode_0.hdf5"});
  EXPECT_EQ(no_run.exit_code, 2);
  EXPECT_NE(no_run.err.find("[record] made is not a run's folder: it holds no experiment.toml"), std::string::npos)
      << no_run.err;
  fs::remove_all(run_folder() / "checkpoints");
  EXPECT_NE(refusal("made/episode_0.hdf5", 2).find("has no 'best' checkpoint yet"), std::string::npos);
  EXPECT_FALSE(fs::exists(run_folder() / "predictions"));
}

TEST_F(Predict, EverySampleOfARecordingWhereNobodyKnowsSteps) {
  train(std::string(small_network) + kEmgData);
  fs::path recording;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "made"))
    if (entry.path().extension() == ".hdf5") recording = entry.path();
  const Finished finished = predict(recording.string(), {"--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("tds_lstm and emg_hdf5 do not both offer headroom.predict/1"), std::string::npos)
      << finished.err;
  const json told = json::parse(finished.out);
  const SafetensorsFile file(run_folder() / "predictions" / recording.stem() / "predictions.safetensors");
  EXPECT_GT(told.at("samples").get<int64_t>(), 4) << "more than one batch";
  EXPECT_EQ(file.tensors().size(), told.at("outputs").size());
  for (const json& output : told.at("outputs")) {
    const TensorBytes* tensor = file.find(output.at("name"));
    ASSERT_NE(tensor, nullptr) << output;
    EXPECT_EQ(json(tensor->shape), output.at("shape"));
    EXPECT_EQ(tensor->shape[0], told.at("samples").get<int64_t>());
  }
}

// The same recordings as any HDF5 files, and what a model predicts in standard deviations.
constexpr const char* kHdf5Data = R"(
[data]
source = "hdf5"
num_workers = 0
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
path = "made"
window_size = 200
stride = 50
sample_rate_hz = 2000.0
fields = [
  { name = "emg", dataset = "emg2pose/timeseries", member = "emg", normalize = true },
  { name = "joint_angles", dataset = "emg2pose/timeseries", member = "joint_angles", unit = "rad", normalize = true },
]
[train]
max_steps = 2
batch_size = 4
)";

// What predict wrote of one recording.
struct Lines {
  explicit Lines(const fs::path& folder)
      : samples(folder / "predictions.safetensors"),
        lines(folder / "recordings.safetensors"),
        predicted(values<double>(lines, "prediction")),
        held(values<double>(lines, "hold_last")),
        recorded(values<double>(lines, "recorded")),
        rows(values<int64_t>(lines, "row")) {}
  SafetensorsFile samples, lines;
  std::vector<double> predicted, held, recorded;
  std::vector<int64_t> rows;
};

TEST_F(Predict, WindowsOfARecordingArePutTogether) {
  std::string data = kEmgData;
  data.replace(data.find("stride = 100"), 12, "stride = 50\nskip_ik_failures = false");
  train(std::string(small_network) + data);
  fs::path recording;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "made"))
    if (entry.path().extension() == ".hdf5") recording = entry.path();
  const Finished finished = predict(recording.string(), {"--json", "--out", "emg"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const json told = json::parse(finished.out);
  EXPECT_EQ(told.at("field"), "joint_angles");
  EXPECT_EQ(fs::path(told.at("out").get<std::string>()).filename(), "prediction.html");
  const Lines found(folder_ / "emg");

  // The same from the rows of all samples, one row of the recording after the other.
  const std::vector<int64_t> shape = found.samples.find("prediction")->shape;
  ASSERT_EQ(shape.size(), 3u);
  const int64_t samples = shape[0], ahead = shape[1], joints = shape[2], context = 200 - ahead;
  ASSERT_GT(context, 0) << "the network looks back, so that the target is a part of its field";
  const auto answers = values<float>(found.samples, "prediction"), targets = values<float>(found.samples, "target");
  const auto masks = values<uint8_t>(found.samples, "mask");
  const int64_t last = 50 * (samples - 1) + 199;
  ASSERT_EQ(found.rows.size(), static_cast<size_t>(last - context + 1));
  ASSERT_EQ(found.lines.find("prediction")->shape, (std::vector<int64_t>{last - context + 1, joints}));
  for (const int64_t joint : {int64_t{0}, joints - 1}) {
    std::map<int64_t, double> target, sum, held, windows;
    std::set<int64_t> valid;
    for (int64_t sample = 0; sample < samples; ++sample) {
      for (int64_t i = 0; i < ahead; ++i) {
        const int64_t row = 50 * sample + context + i;
        target[row] = targets[static_cast<size_t>((sample * ahead + i) * joints + joint)];
        sum[row] += answers[static_cast<size_t>((sample * ahead + i) * joints + joint)];
        ++windows[row];
        if (masks[static_cast<size_t>(sample * ahead + i)] != 0) valid.insert(row);
      }
    }
    for (int64_t sample = 0; sample < samples; ++sample) {
      const int64_t first = 50 * sample + context;
      const auto after = valid.lower_bound(first);
      const double last_known = after == valid.begin() ? target[first] : target[*std::prev(after)];
      for (int64_t i = 0; i < ahead; ++i) held[first + i] += last_known;
    }
    double error = 0.0, held_error = 0.0;
    for (size_t i = 0; i < found.rows.size(); ++i) {
      const auto at = i * static_cast<size_t>(joints) + static_cast<size_t>(joint);
      const int64_t row = found.rows[i];
      ASSERT_EQ(row, context + static_cast<int64_t>(i));
      ASSERT_EQ(found.recorded[at], target[row]) << row;
      ASSERT_NEAR(found.predicted[at], sum[row] / windows[row], 1e-9) << row;
      ASSERT_NEAR(found.held[at], held[row] / windows[row], 1e-9) << row;
      if (!valid.contains(row)) continue;
      error += std::abs(found.predicted[at] - target[row]);
      held_error += std::abs(found.held[at] - target[row]);
    }
    const json& errors = told.at("mean_absolute_error")[static_cast<size_t>(joint)];
    EXPECT_NEAR(errors.at("prediction").get<double>(), error / static_cast<double>(valid.size()), 1e-9);
    EXPECT_NEAR(errors.at("hold_last").get<double>(), held_error / static_cast<double>(valid.size()), 1e-9);
    EXPECT_EQ(errors.at("unit"), "rad");
  }
  EXPECT_NE(read_text(folder_ / "emg/prediction.html").find("hold last"), std::string::npos);

  // A target in standard deviations comes back in radians, by another source.
  write_text(folder_ / "hdf5.toml", std::string(small_network) + kHdf5Data);
  const Finished trained = headroom({"run", "hdf5.toml", "--no-plan", "--out", "other"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Finished again =
      headroom({"predict", run_folder("other").string(), "--input", recording.string(), "--out", "hdf5"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("hold last"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("rad\n"), std::string::npos) << again.out;
  const Lines other(folder_ / "hdf5");
  ASSERT_EQ(other.rows, found.rows);
  for (size_t i = 0; i < found.recorded.size(); ++i) ASSERT_NEAR(other.recorded[i], found.recorded[i], 1e-5) << i;
}

// Found only when it is read: by then there is a folder for what would be predicted.
TEST_F(Predict, WhereNothingWasPredictedNoFolderIsLeft) {
  train(std::string(small_network) + kEmgData);
  fs::path recording;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "made"))
    if (entry.path().extension() == ".hdf5") recording = entry.path();
  {
    std::fstream file(recording, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(fs::file_size(recording) / 2));
    file << std::string(4096, '\xff');
  }
  const std::string sentence = refusal(recording.string(), 4);
  EXPECT_NE(sentence.find(recording.filename()), std::string::npos) << sentence;
  EXPECT_TRUE(fs::is_empty(run_folder() / "predictions")) << sentence;
}

// The trial source has a folder as its path; what it says decides the numbers.
TEST_F(Predict, RowsFollowTheInputAndTheOrder) {
  for (const auto& [name, seed] : {std::pair{"one", "1"}, std::pair{"two", "2"}}) {
    fs::create_directory(folder_ / name);
    write_text(folder_ / name / "seed.txt", seed);
  }
  ASSERT_EQ(run({"data.options.path=one", "train.epochs=1"}).exit_code, 0);
  std::map<std::string, std::string> rows;
  for (const std::string input : {"one", "two"}) {
    const Finished finished = predict(input, {"--plugin-dir", HEADROOM_TEST_PLUGIN_DIR, "--out", "out" + input});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_NE(finished.err.find("does not say which rows of a recording its samples show"), std::string::npos)
        << finished.err;
    EXPECT_FALSE(fs::exists(folder_ / ("out" + input) / "recordings.safetensors"));
    const SafetensorsFile file(folder_ / ("out" + input) / "predictions.safetensors");
    for (const char* name : {"prediction", "target", "mask"}) {
      const TensorBytes* tensor = file.find(name);
      ASSERT_NE(tensor, nullptr) << name;
      EXPECT_EQ(tensor->shape, (std::vector<int64_t>{160, 6})) << name;
      rows[input + name] = std::string(reinterpret_cast<const char*>(tensor->data.data()), tensor->data.size());
    }
  }
  EXPECT_NE(rows["onetarget"], rows["twotarget"]);
  EXPECT_NE(rows["oneprediction"], rows["twoprediction"]);
  // Evaluation reads the same first sample again.
  const Finished again = predict("two", {"--plugin-dir", HEADROOM_TEST_PLUGIN_DIR, "--set", "train.batch_size=7"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const SafetensorsFile file(run_folder() / "predictions/two/predictions.safetensors");
  const TensorBytes* target = file.find("target");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(target->data.data()), target->data.size()), rows["twotarget"]);
}

TEST_F(Predict, ASourceWithoutAPathSaysSo) {
  write_text(folder_ / "toy.toml", R"(
[experiment]
name = "trial"
device = "cpu"
[model]
plugin = "linear_model"
[data]
source = "toy_source"
[train]
max_steps = 1
)");
  const std::string examples = HEADROOM_BUILD_DIR "/examples";
  ASSERT_EQ(headroom({"run", "toy.toml", "--no-plan", "--plugin-dir", examples}).exit_code, 0);
  EXPECT_NE(refusal("toy.toml", 2, {"--plugin-dir", examples}).find("datasource 'toy_source' has no option 'path'"),
            std::string::npos);
}

}  // namespace
}  // namespace headroom
