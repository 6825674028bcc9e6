// As trial_window_test.cpp, on the network people train: 64x1, 16x4, 8x8 and a window that the epoch's end cuts agree.
#include "../../plugins/tds_lstm/plugin_under_test.hpp"
#include "gradients.hpp"
#include "loader_batch.hpp"
#include "retry_of.hpp"

namespace headroom {
namespace {

const EmgRecording kRecording{.window = 96, .channels = 4, .joints = 3, .sample_rate_hz = 200.0};
constexpr const char* kOptions = R"(
tds_stages = [{ in_conv_kernel_width = 5, in_conv_stride = 2, num_blocks = 1, channels = 2, feature_width = 6, kernel_width = 3 },
              { in_conv_kernel_width = 3, in_conv_stride = 2, num_blocks = 1, channels = 2, feature_width = 4, kernel_width = 3 }]
decoder_hidden_size = 8
decoder_num_layers = 2
)";

// Samples whose masks differ in length: some count fully, some hardly, a few not at all.
EmgBatch ragged(int64_t samples) {
  EmgBatch batch = EmgBatch::random(samples, kRecording);
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t counted = i % 7 == 3 ? 0 : kRecording.window - (i * 5) % 60;
    batch.valid.select(0, i).slice(0, counted).zero_();
  }
  return batch;
}

Batch batch_of(const EmgBatch& samples, int64_t first) {
  return loader_batch({samples.emg, samples.angles, samples.valid}, first);
}

// One window of `samples` samples in batches of `batch_size`, the last one as long as what is left.
WindowResult window_of(int64_t samples, int64_t batch_size, int64_t micro_batch, at::ScalarType dtype) {
  at::set_num_threads(1);  // LibTorch's waiting threads burn what a loaded machine needs
  const auto model = make_model(kOptions, kRecording);
  model->to(at::kCPU, dtype);
  Retry retry = retry_of({micro_batch, /*adapts=*/false});
  Window window(*model, at::kCPU, dtype, retry);
  const EmgBatch all = ragged(samples);
  window.begin();
  for (int64_t first = 0; first < samples; first += batch_size) {
    EXPECT_TRUE(window.add(batch_of(all.part(first, std::min(batch_size, samples - first)), first), 0));
  }
  return take(window);
}

class TdsLstmWindow : public testing::TestWithParam<int64_t> {};  // samples in the window

TEST_P(TdsLstmWindow, AnySplitGivesOneGradientInFloat64) {
  const WindowResult whole = window_of(GetParam(), 64, 64, at::kDouble);
  EXPECT_GT(whole.gradients.size(), 10u);
  EXPECT_LT(difference(whole, window_of(GetParam(), 16, 16, at::kDouble)), 1e-12);
  EXPECT_LT(difference(whole, window_of(GetParam(), 8, 8, at::kDouble)), 1e-12);
  EXPECT_LT(difference(whole, window_of(GetParam(), 64, 3, at::kDouble)), 1e-12);
}

TEST_P(TdsLstmWindow, AnySplitGivesOneGradientInFloat32) {
  const WindowResult whole = window_of(GetParam(), 64, 64, at::kFloat);
  EXPECT_LT(difference(whole, window_of(GetParam(), 16, 16, at::kFloat)), 1e-5);
  EXPECT_LT(difference(whole, window_of(GetParam(), 8, 8, at::kFloat)), 1e-5);
  EXPECT_LT(difference(whole, window_of(GetParam(), 64, 8, at::kFloat)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Whole, TdsLstmWindow, testing::Values(64));
INSTANTIATE_TEST_SUITE_P(CutByTheEpochsEnd, TdsLstmWindow, testing::Values(41));

// The mistake: a mean per batch, and the mean of those means.
TEST(TdsLstmWindowMistake, DividingPerBatchShowsWhereTheMaskIsRagged) {
  const WindowResult whole = window_of(64, 64, 64, at::kDouble);
  const EmgBatch all = ragged(64);
  WindowResult mistake;
  for (int64_t first = 0; first < 64; first += 16) {
    const auto model = make_model(kOptions, kRecording);
    model->to(at::kCPU, at::kDouble);
    Retry retry = retry_of({16, /*adapts=*/false});
    Window window(*model, at::kCPU, at::kDouble, retry);
    window.begin();
    EXPECT_TRUE(window.add(batch_of(all.part(first, 16), first), 0));
    const WindowResult part = take(window);
    for (size_t i = 0; i < part.gradients.size(); ++i) {
      if (first == 0) mistake.gradients.push_back(at::zeros_like(part.gradients[i]));
      mistake.gradients[i] += part.gradients[i] / 4.0;
    }
  }
  EXPECT_GT(difference(whole, mistake), 1e-3);
}

}  // namespace
}  // namespace headroom
