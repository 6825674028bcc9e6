// The tests of the plugin tds_lstm: models made of option text and fields, as the trainer makes them, and batches to
// feed them.
#pragma once

#include <memory>
#include <numeric>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "config/options.hpp"
#include "headroom/random.h"
#include "plugins/host.hpp"
#include "plugins/torch_model.hpp"

namespace headroom {

inline const std::filesystem::path plugin_file = std::filesystem::path(HEADROOM_PLUGIN_DIR) / "tds_lstm.so";

// As the trainer's main does before it loads the first plugin.
inline const bool torch_tag_is_set = (set_host_torch_tag(host_torch_tag()), true);

struct Recording {
  int64_t window = 500, channels = 16, joints = 20;
  double sample_rate_hz = 2000.0;
  std::string unit = "rad";

  std::vector<Field> fields() const {
    Field emg = field("emg", kDLFloat, 32, {window, channels}, {"time", "channel"});
    Field angles = field("joint_angles", kDLFloat, 32, {window, joints}, {"time", "joint"});
    Field valid = field("valid", kDLUInt, 8, {window}, {"time"});
    angles.unit = unit;
    return {emg, angles, valid};
  }

 private:
  Field field(std::string name, uint8_t code, uint8_t bits, std::vector<int64_t> shape,
              std::vector<std::string> axes) const {
    Field result;
    result.name = std::move(name);
    result.dtype = {code, bits, 1};
    result.shape = std::move(shape);
    result.axes = std::move(axes);
    result.sample_rate_hz = sample_rate_hz;
    return result;
  }
};

// `options` is the text below [model.options].
inline std::unique_ptr<Model> make_model(const std::string& options, const Recording& recording = {},
                                         uint64_t seed = 1) {
  const Library library = Library::load(plugin_file);
  const toml::table table = toml::parse(options);
  const OptionValues values =
      check_options(to_option_table(library.model_torch()->options), &table, "model.options", "tds_lstm");
  return std::make_unique<Model>(library, values, recording.fields(), seed);
}

struct EmgBatch {
  at::Tensor emg, angles, valid;

  static EmgBatch random(int64_t samples, const Recording& recording, uint64_t seed = 7) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    return {torch::randn({samples, recording.window, recording.channels}, generator),
            torch::randn({samples, recording.window, recording.joints}, generator),
            torch::ones({samples, recording.window}, torch::kUInt8)};
  }

  EmgBatch part(int64_t first, int64_t count) const {
    return {emg.narrow(0, first, count), angles.narrow(0, first, count), valid.narrow(0, first, count)};
  }
  EmgBatch to(at::ScalarType dtype) const { return {emg.to(dtype), angles.to(dtype), valid}; }
};

inline StepResult step(Model& model, const EmgBatch& batch, hr_mode mode = HR_TRAIN) {
  std::vector<uint64_t> keys(static_cast<std::size_t>(batch.emg.size(0)));
  std::iota(keys.begin(), keys.end(), 100u);
  const std::vector<at::Tensor> tensors = {batch.emg, batch.angles, batch.valid};
  return model.step(mode, 0, keys, tensors, /*want_outputs=*/true);
}

inline void clear_gradients(Model& model) {
  for (Parameter& parameter : model.parameters()) parameter.tensor->mutable_grad() = at::Tensor();
}

inline std::vector<at::Tensor> gradients(Model& model) {
  std::vector<at::Tensor> result;
  for (Parameter& parameter : model.parameters()) result.push_back(parameter.tensor->grad().clone());
  return result;
}

inline at::Tensor& parameter(Model& model, const std::string& name) {
  for (Parameter& found : model.parameters()) {
    if (found.name == name) return *found.tensor;
  }
  throw std::out_of_range("no parameter " + name);
}

inline int64_t parameter_count(Model& model) {
  int64_t count = 0;
  for (const Parameter& found : model.parameters()) count += found.tensor->numel();
  return count;
}

// The largest difference, relative to the largest value expected.
inline double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes()) return INFINITY;
  const at::Tensor wanted = expected.to(at::kDouble);
  const double scale = wanted.abs().max().item<double>();
  const double error = (actual.to(at::kDouble) - wanted).abs().max().item<double>();
  return scale > 0.0 ? error / scale : error;
}

}  // namespace headroom
