// The first thing a newcomer sees: experiments/quick_demo.toml makes its data, trains, and beats a constant by a factor
// of two.
#include "data/services.hpp"
#include "data/split.hpp"
#include "headroom/random.h"
#include "plugins/library.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// The samples the encoder needs before its first prediction.
int64_t left_context(const toml::table& model_options) {
  int64_t context = 0, stride = 1;
  for (const char* list : {"conv_blocks", "tds_stages"}) {
    const toml::array* blocks = model_options[list].as_array();
    for (size_t i = 0; blocks != nullptr && i < blocks->size(); ++i) {
      const toml::table& block = *(*blocks)[i].as_table();
      const bool stage = block.contains("in_conv_kernel_width");
      const int64_t kernel = block[stage ? "in_conv_kernel_width" : "kernel_size"].value_or(int64_t{1});
      if (kernel > 0) {
        context += (kernel - 1) * stride;
        stride *= block[stage ? "in_conv_stride" : "stride"].value_or(int64_t{1});
      }
      if (stage)
        context += block["num_blocks"].value_or(int64_t{0}) * (block["kernel_width"].value_or(int64_t{1}) - 1) * stride;
    }
  }
  return context;
}

// The joint angles of evenly spaced windows of a split, where they count: beyond the context and valid. [joint][value]
std::vector<std::vector<double>> targets(const Source& source, const Split& split, int64_t context) {
  const auto& fields = source.fields();
  const auto position = [&](const std::string& name) {
    return static_cast<size_t>(
        std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; }) -
        fields.begin());
  };
  const size_t angles = position("joint_angles"), valid = position("valid");
  const int64_t window = fields[angles].shape[0], joints = fields[angles].shape[1];
  std::vector<float> values(static_cast<size_t>(window * joints));
  std::vector<uint8_t> counts(static_cast<size_t>(window));
  std::vector<std::vector<int64_t>> shapes;
  std::vector<DLTensor> tensors(fields.size());
  for (const Field& field : fields) {
    shapes.push_back(field.shape);
    shapes.back().insert(shapes.back().begin(), 1);
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    tensors[i] = {.data = nullptr,
                  .device = {kDLCPU, 0},
                  .ndim = static_cast<int32_t>(shapes[i].size()),
                  .dtype = fields[i].dtype,
                  .shape = shapes[i].data(),
                  .strides = nullptr,
                  .byte_offset = 0};
  }
  tensors[angles].data = values.data();
  tensors[valid].data = counts.data();

  std::vector<std::vector<double>> result(static_cast<size_t>(joints));
  Reader reader = source.reader();
  const uint64_t step = std::max<uint64_t>(1, split.length() / 1000);
  for (uint64_t i = 0; i < split.length(); i += step) {
    const uint64_t index = split.source_index(i), key = hr_sample_key(0, split.source_split(), 0, index);
    reader.read(split.source_split(), {&index, 1}, {&key, 1}, /*augment=*/false, tensors);
    for (int64_t t = context; t < window; ++t) {
      if (counts[static_cast<size_t>(t)] == 0) continue;
      for (int64_t j = 0; j < joints; ++j)
        result[static_cast<size_t>(j)].push_back(values[static_cast<size_t>(t * joints + j)]);
    }
  }
  return result;
}

// The mean absolute error on `val` of predicting each joint's mean over `train`.
double error_of_the_mean(const fs::path& run) {
  register_data_services();
  const Experiment experiment = load_experiment(run / "experiment.toml");
  const std::vector<fs::path> folders = {HEADROOM_PLUGIN_DIR};
  const Library library = Library::load(find_plugin(experiment.data.source, folders));
  const OptionTable table = to_option_table(library.datasource()->options);
  const auto source =
      Source::open(library, check_options(table, &experiment.data_options, "data.options", "datasource"));
  const Splits splits = divide(*source, experiment.data);
  const int64_t context = left_context(experiment.model_options);
  const auto train = targets(*source, splits.train, context), val = targets(*source, splits.val, context);
  double error = 0.0, count = 0.0;
  for (size_t joint = 0; joint < train.size(); ++joint) {
    double mean = 0.0;
    for (const double value : train[joint]) mean += value / static_cast<double>(train[joint].size());
    for (const double value : val[joint]) error += std::abs(value - mean);
    count += static_cast<double>(val[joint].size());
  }
  return error / count;
}

class QuickDemo : public TrialRun {};

TEST_F(QuickDemo, LearnsTwiceAsWellAsTheMean) {
  const fs::path file = fs::path(HEADROOM_SOURCE_DIR) / "experiments/quick_demo.toml";
  const Finished finished =
      headroom({"run", file.string(), "--set", "data.options.path=" + (folder_ / "data").string()});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  std::vector<fs::path> runs;
  for (const auto& name : fs::directory_iterator(folder_ / "runs")) {
    for (const auto& run : fs::directory_iterator(name.path())) runs.push_back(run.path());
  }
  ASSERT_EQ(runs.size(), 1u);
  const double baseline = error_of_the_mean(runs.front());
  const auto summary = read_json(runs.front() / "summary.json");
  const double error = summary.at("metrics").at("val/mae");
  RecordProperty("val_mae", std::to_string(error));
  RecordProperty("baseline", std::to_string(baseline));
  RecordProperty("train_seconds", std::to_string(summary.at("train_seconds").get<double>()));
  EXPECT_GT(baseline, 0.05) << "the joints hardly move: there is nothing to learn";
  EXPECT_LE(error, 0.5 * baseline);
}

}  // namespace
}  // namespace headroom
