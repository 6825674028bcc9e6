// A small decoder-only language model (GPT-2's arrangement): it learns each token of a window from those before it.
// Field `tokens`: integers [length], one more than the model sees at a time.
#include <cmath>

#include "headroom/model.hpp"

namespace {

using namespace headroom::sdk;

struct Shape {
  int64_t width, heads;
  double dropout;
};

// Attention to the tokens before, then two layers for each token alone; both add to what they are given.
class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(const Shape& shape, uint64_t number) : shape_(shape), number_(number) {
    const int64_t width = shape.width;
    before_attention_ = register_module("before_attention", torch::nn::LayerNorm(std::vector<int64_t>{width}));
    query_key_value_ = register_module("query_key_value", torch::nn::Linear(width, 3 * width));
    attended_ = register_module("attended", torch::nn::Linear(width, width));
    before_mlp_ = register_module("before_mlp", torch::nn::LayerNorm(std::vector<int64_t>{width}));
    wide_ = register_module("wide", torch::nn::Linear(width, 4 * width));
    narrow_ = register_module("narrow", torch::nn::Linear(4 * width, width));
  }

  at::Tensor forward(const Call& call, const at::Tensor& x) {
    const at::Tensor y =
        x + dropout(call, "attention"_site + number_, attend(before_attention_->forward(x)), shape_.dropout);
    const at::Tensor hidden = torch::gelu(wide_->forward(before_mlp_->forward(y)));
    return y + dropout(call, "mlp"_site + number_, narrow_->forward(hidden), shape_.dropout);
  }

 private:
  at::Tensor attend(const at::Tensor& x) {
    const int64_t count = x.size(0), length = x.size(1);
    // [3, count, heads, length, width / heads]
    const at::Tensor all =
        query_key_value_->forward(x).reshape({count, length, 3, shape_.heads, -1}).permute({2, 0, 3, 1, 4});
    // Its own dropout draws from LibTorch's generator, so it gets none.
    const at::Tensor mixed = at::scaled_dot_product_attention(all[0], all[1], all[2], /*attn_mask=*/{},
                                                              /*dropout_p=*/0.0, /*is_causal=*/true);
    return attended_->forward(mixed.transpose(1, 2).reshape({count, length, shape_.width}));
  }

  Shape shape_;
  uint64_t number_;  // blocks draw from sites of their own
  torch::nn::LayerNorm before_attention_{nullptr}, before_mlp_{nullptr};
  torch::nn::Linear query_key_value_{nullptr}, attended_{nullptr}, wide_{nullptr}, narrow_{nullptr};
};
TORCH_MODULE(Block);

class Transformer : public torch::nn::Module {
 public:
  static constexpr uint32_t capabilities = HR_MODEL_FP64 | HR_MODEL_BF16 | HR_RNG_KEYED;

  static OptionList options() {
    return {opt_i64("vocabulary").def(256).min(2).max(65536).help("tokens are 0 to vocabulary - 1; 256: bytes"),
            opt_i64("width").def(64).min(1).max(8192).help("of a token's vector; a multiple of heads"),
            opt_i64("heads").def(4).min(1).max(256).help("of attention"),
            opt_i64("blocks").def(2).min(1).max(256).help("one after the other"),
            opt_f64("dropout").def(0.1).min(0).max(1).help("share of what each block adds that training hides")};
  }

  static std::vector<Input> inputs(const Options& options) {
    return {{.name = "tokens", .dtype = i64, .shape = {17}, .max = static_cast<double>(options.i64("vocabulary") - 1)}};
  }

  Transformer(const Options& options, const Fields& fields)
      : vocabulary_(options.i64("vocabulary")), dropout_(options.f64("dropout")) {
    const Shape shape{options.i64("width"), options.i64("heads"), dropout_};
    const Field& tokens = fields.at("tokens");
    if (tokens.dtype.code == kDLFloat || tokens.shape.size() != 1 || tokens.shape[0] < 2)
      throw Error(HR_INVALID_ARGUMENT, "the model needs a field 'tokens' of integers [length], two at least");
    if (shape.width % shape.heads != 0)
      throw Error(HR_INVALID_ARGUMENT, "width = " + std::to_string(shape.width) +
                                           " is no multiple of heads = " + std::to_string(shape.heads));
    token_ = register_parameter("token", 0.02 * torch::randn({vocabulary_, shape.width}));
    position_ = register_parameter("position", 0.02 * torch::randn({tokens.shape[0] - 1, shape.width}));
    for (int64_t i = 0; i < options.i64("blocks"); ++i)
      blocks_.push_back(register_module("block_" + std::to_string(i), Block(shape, static_cast<uint64_t>(i))));
    last_ = register_module("last", torch::nn::LayerNorm(std::vector<int64_t>{shape.width}));
  }

  std::vector<Metric> metrics() const { return {{.name = "bits_per_token", .unit = "bit"}}; }

  // Weight decay is for matrices: not for biases and the gains of LayerNorm.
  void attributes(Parameter& parameter) const {
    if (parameter.tensor.dim() < 2) parameter.weight_decay_scale = 0.0;
  }

  StepOutput step(const Call& call, const Batch& batch) {
    const at::Tensor tokens = batch.at("tokens").to(at::kLong);
    const int64_t length = tokens.size(1) - 1;
    const at::Tensor seen = tokens.narrow(1, 0, length), next = tokens.narrow(1, 1, length);
    at::Tensor x = dropout(call, "tokens"_site, at::embedding(token_, seen) + position_, dropout_);
    for (Block& block : blocks_) x = block->forward(call, x);
    // The vectors that tokens go in as are what the last ones are compared with.
    at::Tensor scores = at::linear(last_->forward(x), token_).flatten(0, 1);
    if (at::isReducedFloatingType(scores.scalar_type())) scores = scores.to(at::kFloat);
    const at::Tensor loss_sum = at::cross_entropy_loss(scores, next.flatten(), {}, at::Reduction::Sum);
    const auto count = static_cast<double>(next.numel());
    return {loss_sum, count, {}, {{loss_sum.detach() / std::log(2.0), count}}};
  }

 private:
  int64_t vocabulary_;
  double dropout_;
  at::Tensor token_, position_;
  std::vector<Block> blocks_;
  torch::nn::LayerNorm last_{nullptr};
};

}  // namespace

HEADROOM_PLUGIN(.id = "transformer", .version = "1.0", .summary = "A small decoder-only language model",
                .interfaces = {headroom::sdk::model<Transformer>()});
