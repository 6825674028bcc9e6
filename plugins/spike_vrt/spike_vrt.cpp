// The plugin: fields into a clip, the network, its loss.
#include <algorithm>
#include <cstdint>

#include "headroom/model.hpp"
#include "headroom/sdk/predict_model.hpp"
#include "network.hpp"
#include "score.hpp"
#include "tiling.hpp"

namespace headroom {
namespace {

class SpikeVrt {
 public:
  static constexpr uint32_t capabilities =
      HR_MODEL_FP64 | HR_MODEL_BF16 | HR_MODEL_FP16 | HR_MODEL_MANY_ROWS | HR_RNG_KEYED;
  static constexpr auto recompute_kinds = kRecomputed;
  static sdk::OptionList options() { return Architecture::options(); }

  SpikeVrt(const sdk::Options& options, const sdk::Fields& fields)
      : architecture_(Architecture::read(options, fields)), network_(architecture_) {}

  torch::nn::Module& module() { return network_.module(); }

  void attributes(sdk::Parameter& parameter) const {
    const std::string& name = parameter.name;
    if (parameter.kind != HR_PARAMETER) return;
    if (name.find("spynet") == std::string::npos && name.find("deform") == std::string::npos) return;
    parameter.group = "flow";
    parameter.lr_scale = architecture_.flow_lr_scale;
    parameter.frozen_until_step = architecture_.flow_lr_scale == 0.0 ? INT64_MAX : architecture_.fix_iters;
  }

  std::vector<sdk::Output> outputs() const {
    return {{"deblurred", HR_PREDICTION}, {"sharp", HR_TARGET}, {"blurry", HR_AUX}};
  }

  std::vector<sdk::Metric> metrics() const {
    return {{"psnr", "dB", HR_MEAN, HR_HIGHER}, {"ssim", "", HR_MEAN, HR_HIGHER}};
  }

  sdk::StepOutput step(const sdk::Call& call, const sdk::Batch& batch) {
    const at::Tensor blurry = colours(batch.at("blur")), clip = clip_of(batch, blurry);
    const at::Tensor deblurred = call.training() ? trained(call, clip) : restored(call, clip, architecture_.tiles);
    return scored(call, deblurred, colours(batch.at("sharp")), blurry);
  }

  // headroom.predict/1: whole frames, whatever the size of those in training.
  static constexpr const char* target_field = "sharp";
  static constexpr uint64_t overlap = 2;
  std::vector<at::Tensor> predict(const sdk::Call& call, const sdk::Batch& batch) {
    const at::Tensor blurry = colours(batch.at("blur"));
    return {restored(call, clip_of(batch, blurry), tiles_for(blurry)), at::Tensor(), blurry};
  }

 private:
  // As asked for; else large frames in tiles of the reference's size.
  Tiles tiles_for(const at::Tensor& blurry) const {
    constexpr int64_t largest_whole = 256;
    if (architecture_.tiles.used || std::max(blurry.size(3), blurry.size(4)) <= largest_whole)
      return architecture_.tiles;
    const auto& [frames, rows, columns] = architecture_.network.window;
    return {.used = true, .frames = 0, .pixels = std::max({int64_t{192}, least_pixels(rows), least_pixels(columns)})};
  }

  at::Tensor clip_of(const sdk::Batch& batch, const at::Tensor& blurry) const {
    return architecture_.bins == 0 ? blurry : at::cat({blurry, batch.at("voxel").to(blurry.scalar_type())}, 2);
  }

  // uint8 is of 255.
  at::Tensor colours(const at::Tensor& images) {
    const at::ScalarType dtype = module().parameters().front().scalar_type();
    return images.scalar_type() == at::kByte ? images.to(dtype).div_(255.0) : images.to(dtype);
  }

  at::Tensor trained(const sdk::Call& call, const at::Tensor& clip) {
    architecture_.require_size(clip.size(1), clip.size(3), clip.size(4));
    return network_.forward(call, clip);
  }

  at::Tensor restored(const sdk::Call& call, const at::Tensor& clip, const Tiles& tiles) {
    const Restore whole = [&](const at::Tensor& part) { return trained(call, part); };
    return tiles.used ? restore_tiled(clip, tiles, architecture_.network.window, whole)
                      : restore_padded(clip, {1, 8, 8}, whole);
  }

  sdk::StepOutput scored(const sdk::Call& call, const at::Tensor& deblurred, const at::Tensor& sharp,
                         const at::Tensor& blurry) {
    sdk::StepOutput result{.loss_sum = charbonnier_sum(deblurred, sharp, architecture_.charbonnier_eps),
                           .weight = static_cast<double>(call.count())};
    if (call.wants_outputs()) result.outputs = {deblurred, sharp, blurry};
    if (!call.wants_metrics()) return result;
    const at::NoGradGuard no_grad;
    const at::Tensor ours = as_stored(deblurred).flatten(0, 1), theirs = as_stored(sharp).flatten(0, 1);
    const auto frames = static_cast<double>(ours.size(0));
    result.metrics = {{psnr(ours, theirs).sum(), frames}, {ssim(ours, theirs).sum(), frames}};
    return result;
  }

  Architecture architecture_;
  Network network_;
};

}  // namespace
}  // namespace headroom

HEADROOM_PLUGIN(.id = "spike_vrt", .version = "1.0.0",
                .summary = "VRT: blurry frames, with or without spikes, to sharp ones",
                .interfaces = {headroom::sdk::model<headroom::SpikeVrt>(),
                               headroom::sdk::predict<headroom::sdk::ModelSide<headroom::SpikeVrt>>()});
