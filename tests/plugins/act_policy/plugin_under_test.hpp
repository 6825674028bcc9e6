// The tests of the plugin act_policy: policies made of option text and fields, as the trainer makes them, and batches
// to feed them.
#pragma once

#include "../models/model_under_test.hpp"
#include "headroom/random.h"

namespace headroom {

// A policy small enough for a test; two decoder layers, of which the first is run.
inline const std::string kTiny = R"(
chunk_size = 5
hidden_dim = 16
dim_feedforward = 24
nheads = 4
enc_layers = 2
dec_layers = 2
backbone_widths = [4, 6, 8, 10]
)";

struct Robot {
  int64_t cameras = 2, height = 33, width = 40, joints = 3, longest = 8;
  bool has_eps = true;
  std::vector<Channel> channels = {};

  std::vector<Field> fields() const {
    std::vector<Field> all = {
        plain_field("image", kUInt8, {cameras, 3, height, width}), plain_field("qpos", kFloat32, {joints}),
        plain_field("action", kFloat32, {longest, joints}), plain_field("is_pad", kUInt8, {longest})};
    if (has_eps) all.push_back(plain_field("eps", kFloat32, {32}));
    all[2].channel_axis = 1;
    all[2].channels = channels;
    return all;
  }
};

// `options` is the text below [model.options].
inline std::unique_ptr<Model> make_policy(const std::string& options, const Robot& robot, uint64_t seed = 1) {
  return make_model("act_policy", options, robot.fields(), seed);
}

// In the order of Robot::fields(); an undefined tensor is an absent field.
struct Demonstrations {
  at::Tensor image, qpos, action, is_pad, eps;

  // Samples of different length: some hardly begun, one whole.
  static Demonstrations random(int64_t samples, const Robot& robot, uint64_t seed = 7) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    Demonstrations batch;
    batch.image =
        torch::randint(0, 256, {samples, robot.cameras, 3, robot.height, robot.width}, generator, torch::kUInt8);
    batch.qpos = torch::randn({samples, robot.joints}, generator);
    batch.action = torch::randn({samples, robot.longest, robot.joints}, generator);
    batch.is_pad = torch::zeros({samples, robot.longest}, torch::kUInt8);
    for (int64_t i = 0; i < samples; ++i) batch.is_pad.select(0, i).slice(0, 1 + (3 * i + 2) % robot.longest).fill_(1);
    return batch;
  }
  std::vector<at::Tensor> fields(const Robot& robot) const {
    std::vector<at::Tensor> all = {image, qpos, action, is_pad};
    if (robot.has_eps) all.push_back(eps);
    return all;
  }
  Demonstrations part(int64_t first, int64_t count) const {
    const auto cut = [&](const at::Tensor& x) { return x.defined() ? x.narrow(0, first, count) : x; };
    return {cut(image), cut(qpos), cut(action), cut(is_pad), cut(eps)};
  }
  Demonstrations to(at::ScalarType dtype) const {
    const auto cast = [&](const at::Tensor& x) { return x.defined() ? x.to(dtype) : x; };
    return {image, cast(qpos), cast(action), is_pad, cast(eps)};
  }
};

inline StepResult step(Model& model, const Demonstrations& batch, const Robot& robot, hr_mode mode = HR_TRAIN) {
  std::vector<uint64_t> keys;
  for (int64_t i = 0; i < batch.image.size(0); ++i) keys.push_back(hr_sample_key(1, 0, 0, static_cast<uint64_t>(i)));
  return model.step(mode, 0, keys, batch.fields(robot), /*want_outputs=*/true);
}

}  // namespace headroom
