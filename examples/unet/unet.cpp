// U-Net (Ronneberger et al. 2015) with batch norm, for segmentation: a class for each pixel. Fields: `image`
// [channels, height, width], uint8 or floats, and `mask`, integers [height, width].
#include "headroom/model.hpp"

namespace {

using namespace headroom::sdk;

// Two convolutions, each with batch norm.
class StageImpl : public torch::nn::Module {
 public:
  StageImpl(int64_t in, int64_t out) {
    first_ = register_module("first", torch::nn::Conv2d(kernel(in, out)));
    first_norm_ = register_module("first_norm", torch::nn::BatchNorm2d(out));
    second_ = register_module("second", torch::nn::Conv2d(kernel(out, out)));
    second_norm_ = register_module("second_norm", torch::nn::BatchNorm2d(out));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor hidden = torch::relu(first_norm_->forward(first_->forward(x)));
    return torch::relu(second_norm_->forward(second_->forward(hidden)));
  }

 private:
  // Batch norm subtracts the mean, so a bias would count for nothing.
  static torch::nn::Conv2dOptions kernel(int64_t in, int64_t out) {
    return torch::nn::Conv2dOptions(in, out, 3).padding(1).bias(false);
  }
  torch::nn::Conv2d first_{nullptr}, second_{nullptr};
  torch::nn::BatchNorm2d first_norm_{nullptr}, second_norm_{nullptr};
};
TORCH_MODULE(Stage);

class UNet : public torch::nn::Module {
 public:
  // Batch norm ties the samples of a batch together: the host never splits one, and says so where a batch does not fit.
  static constexpr uint32_t capabilities = HR_MODEL_FP64 | HR_COUPLES_SAMPLES;

  static OptionList options() {
    return {opt_i64("classes").def(2).min(2).max(HR_MOST_CLASSES).help("that a pixel may be of"),
            opt_i64("channels").def(8).min(1).max(1024).help("of the first stage; each next one has twice as many"),
            opt_i64("depth").def(2).min(1).max(6).help("how often the picture is halved")};
  }

  static std::vector<Input> inputs(const Options& options) {
    const auto last = static_cast<double>(options.i64("classes") - 1);
    const int64_t side = int64_t{1} << (options.i64("depth") + 2);
    return {{.name = "image", .shape = {1, side, side}},
            {.name = "mask", .dtype = i64, .shape = {side, side}, .max = last}};
  }

  UNet(const Options& options, const Fields& fields)
      : classes_(options.i64("classes")), is_bytes_(same_type(fields.at("image").dtype, u8)) {
    const Field &image = fields.at("image"), &mask = fields.at("mask");
    const int64_t depth = options.i64("depth");
    require_shapes(image, mask, depth);
    int64_t channels = options.i64("channels");
    stem_ = register_module("stem", Stage(image.shape[0], channels));
    for (int64_t i = 0; i < depth; ++i, channels *= 2)
      down_.push_back(register_module("down_" + std::to_string(i), Stage(channels, 2 * channels)));
    for (int64_t i = 0; i < depth; ++i, channels /= 2) {
      grow_.push_back(register_module(
          "grow_" + std::to_string(i),
          torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(channels, channels / 2, 2).stride(2))));
      up_.push_back(register_module("up_" + std::to_string(i), Stage(channels, channels / 2)));
    }
    scores_ = register_module("scores", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, classes_, 1)));
  }

  std::vector<Output> outputs() const {
    return {{.name = "scores", .role = HR_PREDICTION}, {.name = "mask", .role = HR_TARGET}};
  }
  std::vector<ClassScores> classes() const { return {{.output = "scores", .count = classes_, .field = "mask"}}; }

  StepOutput step(const Call&, const Batch& batch) {
    const at::Tensor given = batch.at("image");
    at::Tensor x = stem_->forward(is_bytes_ ? given.to(scores_->weight.scalar_type()) / 255.0 : given);
    std::vector<at::Tensor> passed;
    for (Stage& stage : down_) {
      passed.push_back(x);
      x = stage->forward(at::max_pool2d(x, 2));
    }
    for (std::size_t i = 0; i < up_.size(); ++i) {
      x = up_[i]->forward(at::cat({grow_[i]->forward(x), passed.back()}, 1));
      passed.pop_back();
    }
    const at::Tensor scores = scores_->forward(x);
    const at::Tensor mask = batch.at("mask").to(at::kLong);
    const at::Tensor loss_sum = at::cross_entropy_loss(scores, mask, {}, at::Reduction::Sum);
    return {loss_sum, static_cast<double>(mask.numel()), {scores.permute({0, 2, 3, 1}), mask}};
  }

 private:
  static void require_shapes(const Field& image, const Field& mask, int64_t depth) {
    if (image.shape.size() != 3)
      throw Error(HR_INVALID_ARGUMENT,
                  "the model needs a field 'image' [channels, height, width]; permute brings it there");
    if (mask.dtype.code == kDLFloat || mask.shape != std::vector<int64_t>(image.shape.begin() + 1, image.shape.end()))
      throw Error(HR_INVALID_ARGUMENT, "the model needs a field 'mask' of integers, one for each pixel of 'image'");
    const int64_t side = int64_t{1} << depth;
    if (image.shape[1] % side != 0 || image.shape[2] % side != 0)
      throw Error(HR_INVALID_ARGUMENT, "pictures are halved " + std::to_string(depth) +
                                           " times: their sides must be multiples of " + std::to_string(side));
  }

  int64_t classes_;
  bool is_bytes_;
  Stage stem_{nullptr};
  std::vector<Stage> down_, up_;
  std::vector<torch::nn::ConvTranspose2d> grow_;
  torch::nn::Conv2d scores_{nullptr};
};

}  // namespace

HEADROOM_PLUGIN(.id = "unet", .version = "1.0", .summary = "U-Net with batch norm, for segmentation",
                .interfaces = {headroom::sdk::model<UNet>()});
