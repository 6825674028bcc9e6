// libheadroom_infer beside `headroom predict`: examples/infer, given the samples of a recording of the quick demo's
// kind as they were measured, gives what predict writes.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <sys/wait.h>

#include "../datasources/plugin_source.hpp"
#include "small_network.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class Infer : public TrialRun {
 protected:
  void SetUp() override {
    TrialRun::SetUp();
    write_text(folder_ / "here.toml", std::string(small_network) + small_recordings);
    const Finished finished = headroom({"run", "here.toml", "--no-plan", "--out", "runs", "--set", "train.max_steps=4",
                                        "--set", "train.ema.decay=0.5"});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    recording_ = a_recording(folder_ / "made");
    ASSERT_FALSE(recording_.empty());
  }

  // Every sample of the recording as the run's datasource gives it, a file a field. Returns how many.
  uint64_t write_samples(const fs::path& folder) const {
    const Library library = load_plugin("emg_hdf5");
    const auto source = open_source(library, recording_, "window_size = 200\nstride = 100\nsplits = \"none\"");
    std::vector<uint64_t> index(source->length(0));
    std::iota(index.begin(), index.end(), uint64_t{0});
    Reader reader = source->reader();
    const auto samples = read_fields(reader, *source, 0, index, /*key=*/index, /*augment=*/false);
    fs::create_directory(folder);
    for (const Field& field : source->fields()) {
      std::string bytes;
      for (const Sample& sample : samples) {
        const std::vector<std::byte>& values = sample.at(field.name);
        bytes.append(reinterpret_cast<const char*>(values.data()), values.size());
      }
      write_text(folder / (field.name + ".bin"), bytes);
    }
    return samples.size();
  }

  // examples/infer; what it prints is in folder_/printed. Returns its exit code.
  int example(const std::string& words) const {
    const std::string command = "cd '" + folder_.string() +
                                "' && HEADROOM_PLUGIN_PATH='" HEADROOM_PLUGIN_DIR "' '" HEADROOM_BUILD_DIR
                                "/examples/infer' " +
                                words + " > printed 2>&1";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string printed() const { return read_text(folder_ / "printed"); }

  fs::path recording_;
};

TEST_F(Infer, TheLibraryGivesWhatPredictWrites) {
  const Finished finished =
      headroom({"predict", run_folder().string(), "--input", recording_.string(), "--out", "predicted"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const SafetensorsFile expected(folder_ / "predicted/predictions.safetensors");
  const std::string samples = std::to_string(write_samples(folder_ / "samples"));
  ASSERT_GT(std::stoi(samples), 4) << "more than one batch of predict";

  ASSERT_EQ(headroom({"export", run_folder().string(), "--out", "model.safetensors"}).exit_code, 0);
  for (const std::string& model : {run_folder().string(), std::string("model.safetensors")}) {
    ASSERT_EQ(example("'" + model + "' " + samples + " samples"), 0) << printed();
    const auto given = as_values<float>(read_text(folder_ / "samples/prediction.out"));
    const auto rows = values<float>(expected, "prediction");
    ASSERT_EQ(given.size(), rows.size()) << model;
    float largest = 0.0F;
    for (const float row : rows) largest = std::max(largest, std::abs(row));
    ASSERT_GT(largest, 0.0F);
    // Batches of another size round otherwise.
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_NEAR(given[i], rows[i], 1e-5F * largest) << model << " " << i;
    fs::remove(folder_ / "samples/prediction.out");
  }
}

TEST_F(Infer, TheExampleSaysWhatAModelTakesAndGives) {
  ASSERT_EQ(example("'" + run_folder().string() + "'"), 0) << printed();
  EXPECT_NE(printed().find("  emg float32 [samples, 200, 16]"), std::string::npos) << printed();
  EXPECT_NE(printed().find("  prediction float32 [samples, "), std::string::npos) << printed();
  EXPECT_EQ(example("nowhere"), 1);
  EXPECT_NE(printed().find("there is no such run's folder"), std::string::npos) << printed();
  fs::create_directory(folder_ / "empty");
  EXPECT_EQ(example("'" + run_folder().string() + "' 2 empty"), 1);
  EXPECT_NE(printed().find("[infer] no input was given"), std::string::npos) << printed();
  // Files of four samples, of which two were asked for.
  const fs::path samples = folder_ / "samples";
  write_samples(samples);
  EXPECT_EQ(example("'" + run_folder().string() + "' 2 samples"), 1);
  EXPECT_NE(printed().find("emg.bin: it must hold "), std::string::npos) << printed();
}

}  // namespace
}  // namespace headroom
