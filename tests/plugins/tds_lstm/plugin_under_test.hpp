// The tests of the plugin tds_lstm: models made of option text and fields, as the trainer makes them, and batches to
// feed them.
#pragma once

#include <numeric>

#include "../models/model_under_test.hpp"

namespace headroom {

struct EmgRecording {
  int64_t window = 500, channels = 16, joints = 20;
  double sample_rate_hz = 2000.0;
  std::string unit = "rad";

  std::vector<Field> fields() const {
    Field emg = field("emg", kFloat32, {window, channels}, {"time", "channel"});
    Field angles = field("joint_angles", kFloat32, {window, joints}, {"time", "joint"});
    Field valid = field("valid", kUInt8, {window}, {"time"});
    angles.unit = unit;
    return {emg, angles, valid};
  }

 private:
  Field field(std::string name, DLDataType dtype, std::vector<int64_t> shape, std::vector<std::string> axes) const {
    Field result = plain_field(std::move(name), dtype, std::move(shape));
    result.axes = std::move(axes);
    result.sample_rate_hz = sample_rate_hz;
    return result;
  }
};

// Small and quick: context 12, 125 Hz as the public recordings with five joints.
inline const std::string tiny_encoder = R"(
tds_stages = [{in_conv_kernel_width = 5, in_conv_stride = 2, num_blocks = 1, channels = 4, feature_width = 2, kernel_width = 5}]
)";
inline const std::string tiny = tiny_encoder + "decoder_hidden_size = 6\ndecoder_num_layers = 2\n";
inline const EmgRecording tiny_recording{60, 8, 5, 125.0};

// `options` is the text below [model.options].
inline std::unique_ptr<Model> make_model(const std::string& options, const EmgRecording& recording = {},
                                         uint64_t seed = 1) {
  return make_model("tds_lstm", options, recording.fields(), seed);
}

struct EmgBatch {
  at::Tensor emg, angles, valid;

  static EmgBatch random(int64_t samples, const EmgRecording& recording, uint64_t seed = 7) {
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

inline int64_t parameter_count(Model& model) {
  int64_t count = 0;
  for (const Parameter& found : model.parameters()) count += found.tensor->numel();
  return count;
}

}  // namespace headroom
