// libheadroom_infer beside `headroom predict`: examples/infer, given the samples of a recording of the quick demo's
// kind as they were measured, gives what predict writes.
#include <algorithm>
#include <cmath>
#include <sys/wait.h>

#include "../runner/record/tensor_values.hpp"
#include "data/services.hpp"
#include "headroom/random.h"
#include "plugins/library.hpp"
#include "plugins/source.hpp"
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
    register_data_services();
    const Library library = Library::load(HEADROOM_PLUGIN_DIR "/emg_hdf5.so");
    toml::table table =
        toml::table{{"path", recording_.string()}, {"window_size", 200}, {"stride", 100}, {"splits", "none"}};
    const OptionTable options = to_option_table(library.datasource()->options);
    const auto source = Source::open(library, check_options(options, &table, "data.options", "the test"));
    const uint64_t samples = source->length(0);
    std::vector<uint64_t> index, key;
    for (uint64_t i = 0; i < samples; ++i) {
      index.push_back(i);
      key.push_back(hr_sample_key(0, 0, 0, i));
    }
    std::vector<std::vector<int64_t>> shapes;
    for (const Field& field : source->fields()) {
      shapes.push_back(field.shape);
      shapes.back().insert(shapes.back().begin(), static_cast<int64_t>(samples));
    }
    std::vector<std::string> bytes;
    std::vector<DLTensor> arrays(shapes.size());
    for (const Field& field : source->fields()) bytes.emplace_back(static_cast<size_t>(field.bytes()) * samples, '\0');
    for (size_t i = 0; i < arrays.size(); ++i) {
      arrays[i].data = bytes[i].data();
      arrays[i].device = {kDLCPU, 0};
      arrays[i].ndim = static_cast<int32_t>(shapes[i].size());
      arrays[i].dtype = source->fields()[i].dtype;
      arrays[i].shape = shapes[i].data();
    }
    source->reader().read(0, index, key, /*augment=*/false, arrays);
    fs::create_directory(folder);
    for (size_t i = 0; i < bytes.size(); ++i) write_text(folder / (source->fields()[i].name + ".bin"), bytes[i]);
    return samples;
  }

  // examples/infer; what it prints is in folder_/printed. Returns its exit code.
  int example(const std::string& words) const {
    const std::string command = "cd '" + folder_.string() + "' && HEADROOM_PLUGIN_PATH='" HEADROOM_PLUGIN_DIR "' '" +
                                HEADROOM_EXAMPLE_DIR + "/infer' " + words + " > printed 2>&1";
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
}

}  // namespace
}  // namespace headroom
