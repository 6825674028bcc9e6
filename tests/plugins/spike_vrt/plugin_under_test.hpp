// The tests of the plugin spike_vrt: networks made of option text and fields, as the trainer makes them, and clips to
// feed them.
#pragma once

#include "../models/model_under_test.hpp"
#include "headroom/random.h"

namespace headroom {

// A network small enough for a test: one block of mutual attention and one of self attention a stage.
inline const std::string kTiny = R"(
depths = [2, 2, 2, 2, 2, 2, 2, 1, 1]
embed_dims = [8, 8, 8, 8, 8, 8, 8, 8, 8]
num_heads = [2, 2, 2, 2, 2, 2, 2, 2, 2]
window_size = [2, 4, 4]
mul_attn_ratio = 0.5
deformable_groups = 2
indep_reconsts = [8]
)";
inline const std::string kColours = kTiny + "fusion = \"none\"\n";
inline const std::string kStill = kColours + "drop_path_rate = 0.0\n";

struct Camera {
  int64_t frames = 2, rows = 40, columns = 48, bins = 0;  // bins 0: no voxel
  bool bytes = false;

  std::vector<Field> fields() const {
    const DLDataType dtype = bytes ? kUInt8 : kFloat32;
    std::vector<Field> all = {plain_field("blur", dtype, {frames, 3, rows, columns}),
                              plain_field("sharp", dtype, {frames, 3, rows, columns})};
    if (bins > 0) all.push_back(plain_field("voxel", kFloat32, {frames, bins, rows, columns}));
    return all;
  }
};

// `options` is the text below [model.options].
inline std::unique_ptr<Model> make_network(const std::string& options, const Camera& camera, uint64_t seed = 1) {
  return make_model("spike_vrt", options, camera.fields(), seed);
}

// In the order of Camera::fields(); an undefined tensor is an absent field.
struct Clips {
  at::Tensor blur, sharp, voxel;

  static Clips random(int64_t samples, const Camera& camera, uint64_t seed = 7) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    const auto drawn = [&](int64_t channels) {
      return torch::rand({samples, camera.frames, channels, camera.rows, camera.columns}, generator);
    };
    Clips clips{drawn(3), drawn(3), camera.bins > 0 ? drawn(camera.bins) : at::Tensor()};
    if (camera.bytes) {
      clips.blur = (clips.blur * 255).to(at::kByte);
      clips.sharp = (clips.sharp * 255).to(at::kByte);
    }
    return clips;
  }
  std::vector<at::Tensor> fields(const Camera& camera) const {
    std::vector<at::Tensor> all = {blur, sharp};
    if (camera.bins > 0) all.push_back(voxel);
    return all;
  }
  Clips part(int64_t first, int64_t count) const {
    const auto cut = [&](const at::Tensor& x) { return x.defined() ? x.narrow(0, first, count) : x; };
    return {cut(blur), cut(sharp), cut(voxel)};
  }
};

inline std::vector<uint64_t> keys_of(int64_t first, int64_t count) {
  std::vector<uint64_t> keys;
  for (int64_t i = first; i < first + count; ++i) keys.push_back(hr_sample_key(1, 0, 0, static_cast<uint64_t>(i)));
  return keys;
}

// Sample i of the batch is the (first + i)-th of its epoch.
inline StepResult step(Model& model, const Clips& clips, const Camera& camera, hr_mode mode = HR_TRAIN,
                       int64_t first = 0) {
  return model.step(mode, 0, keys_of(first, clips.blur.size(0)), clips.fields(camera), /*want_outputs=*/true);
}

inline void train(Model& model) {
  for (Parameter& each : model.parameters())
    if (each.kind == HR_PARAMETER) each.tensor->requires_grad_(each.trains());
}

}  // namespace headroom
