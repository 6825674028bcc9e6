// The gradient is exact, and the same however a window is divided.
#include <gtest/gtest.h>

#include "plugin_under_test.hpp"

namespace headroom {
namespace {

// One window's gradients from micro-batches of `split` samples: summed and divided once, and as they would be if each
// were a mean.
struct WindowGradients {
  std::vector<at::Tensor> divided_once, divided_each;
};

WindowGradients accumulate(Model& model, const EmgBatch& window, const std::vector<int64_t>& split) {
  WindowGradients result;
  double weight = 0.0;
  int64_t first = 0;
  for (const int64_t count : split) {
    clear_gradients(model);
    const StepResult part = step(model, window.part(first, count));
    part.loss_sum.backward();
    const std::vector<at::Tensor> sums = gradients(model);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const at::Tensor mean = sums[i] / (part.weight.item<double>() * static_cast<double>(split.size()));
      if (first == 0) {
        result.divided_once.push_back(sums[i]);
        result.divided_each.push_back(mean);
      } else {
        result.divided_once[i] += sums[i];
        result.divided_each[i] += mean;
      }
    }
    weight += part.weight.item<double>();
    first += count;
  }
  for (at::Tensor& gradient : result.divided_once) gradient /= weight;
  return result;
}

void expect_same_gradients(at::ScalarType dtype, double limit) {
  const auto model = make_model("decoder_hidden_size = 32", EmgRecording{300});
  model->to(at::kCPU, dtype);
  EmgBatch window = EmgBatch::random(64, EmgRecording{300}).to(dtype);
  for (int64_t i = 0; i < 64; i += 3)
    window.valid[i].narrow(0, 180 + i, 20).zero_();  // so that micro-batches weigh differently
  window.valid[5].zero_();
  const std::vector<at::Tensor> whole = accumulate(*model, window, {64}).divided_once;
  double wrong = 0.0;
  for (const auto& split : {std::vector<int64_t>(4, 16), std::vector<int64_t>(8, 8), {13, 1, 37, 10, 3}}) {
    const WindowGradients parts = accumulate(*model, window, split);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_LE(relative_error(parts.divided_once[i], whole[i]), limit)
          << model->parameters()[i].name << " in " << split.size() << " parts";
      wrong = std::max(wrong, relative_error(parts.divided_each[i], whole[i]));
    }
  }
  EXPECT_GT(wrong, 1e-3) << "this window cannot tell a mean of means from the mean";
}

TEST(TdsLstm, AccumulatedGradientsAgreeInDouble) { expect_same_gradients(at::kDouble, 1e-12); }
TEST(TdsLstm, AccumulatedGradientsAgreeInFloat) { expect_same_gradients(at::kFloat, 1e-5); }

// Central differences in float64, in a few elements of every parameter.
void expect_exact_gradients(const std::string& options) {
  const auto model = make_model(options, tiny_recording);
  model->to(at::kCPU, at::kDouble);
  EmgBatch batch = EmgBatch::random(2, tiny_recording).to(at::kDouble);
  batch.valid[0].narrow(0, 40, 5).zero_();
  step(*model, batch).loss_sum.backward();
  const std::vector<at::Tensor> exact = gradients(*model);
  const torch::NoGradGuard no_grad;
  const double h = 1e-6;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    at::Tensor values = model->parameters()[i].tensor->view({-1});
    const double scale = exact[i].abs().max().item<double>();
    for (const int64_t element : {int64_t{0}, values.numel() / 2, values.numel() - 1}) {
      const double value = values[element].item<double>();
      values[element] = value + h;
      const double above = step(*model, batch).loss_sum.item<double>();
      values[element] = value - h;
      const double below = step(*model, batch).loss_sum.item<double>();
      values[element] = value;
      EXPECT_NEAR(exact[i].view({-1})[element].item<double>(), (above - below) / (2 * h), 1e-5 * scale + 1e-7)
          << model->parameters()[i].name << " element " << element;
    }
  }
}

const std::string smooth = "loss_weights = {mse = 1.0, mae = 0.0}\n";
TEST(TdsLstm, GradientIsExactTracking) { expect_exact_gradients(tiny + smooth + "predict_vel = true"); }
TEST(TdsLstm, GradientIsExactVelocityAfterPosition) {
  expect_exact_gradients(tiny + smooth + "pose_module = \"vemg2pose\"\nnum_position_steps = 20");
}
TEST(TdsLstm, GradientIsExactMlp) {
  expect_exact_gradients(tiny_encoder + smooth +
                         "decoder = \"mlp\"\ndecoder_layer_sizes = [7]\nprovide_initial_pos = false");
}
TEST(TdsLstm, GradientIsExactWithoutState) { expect_exact_gradients(tiny + smooth + "state_condition = false"); }

}  // namespace
}  // namespace headroom
