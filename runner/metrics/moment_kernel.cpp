#include "metrics/moment_kernel.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {

namespace {

template <class T>
struct SumMoments {
  static HEADROOM_KERNEL_BODY void run(const MomentRows<T>* rows, double* moments, double* scratch) {
    const int64_t channels = rows->channels;
    double *const count = moments + Moment::count * channels, *const mean = moments + Moment::mean * channels;
    double* const variation = moments + Moment::variation * channels;
    double* const square = moments + Moment::squared_error * channels;
    double* const absolute = moments + Moment::absolute_error * channels;
    double *const origin = scratch, *const shift = scratch + channels;
    std::fill_n(moments, Moment::rows * channels, 0.0);
    std::fill_n(scratch, 2 * channels, 0.0);

    each_row(
        *rows, [&](const T* prediction, const T* target, int64_t c) __attribute__((always_inline)) {
          const auto value = static_cast<double>(target[c]), error = static_cast<double>(prediction[c]) - value;
          // A value of the channel itself, so that a target that never changes has a variation of exactly zero.
          origin[c] = count[c] == 0.0 ? value : origin[c];
          shift[c] += (value - origin[c]);
          count[c] += 1.0;
          square[c] += error * error;
          absolute[c] += std::fabs(error);
        });
    // With the mean known, a second pass sums the deviations: sums of squares would cancel.
    for (int64_t c = 0; c < channels; ++c) {
      shift[c] /= std::max(count[c], 1.0);
      mean[c] = origin[c] + shift[c];
    }
    each_row(
        *rows, [&](const T*, const T* target, int64_t c) __attribute__((always_inline)) {
          const double deviation = (static_cast<double>(target[c]) - origin[c]) - shift[c];
          variation[c] += deviation * deviation;
        });
  }

 private:
  // add(prediction, target, channel) for every element that counts. Others may be NaN.
  template <class Add>
  static HEADROOM_KERNEL_BODY void each_row(const MomentRows<T>& rows, Add add) {
    for (int64_t r = 0; r < rows.rows; ++r) {
      const T *const prediction = rows.prediction + r * rows.channels, *const target = rows.target + r * rows.channels;
      const bool* const valid = rows.valid == nullptr ? nullptr : rows.valid + r * rows.valid_row_stride;
      // No mask, or one value for the row: no branch in the loop. ivdep says that sums and inputs do not overlap.
      if (valid == nullptr || rows.valid_channel_stride == 0) {
        if (valid != nullptr && !*valid) continue;
#pragma GCC ivdep
        for (int64_t c = 0; c < rows.channels; ++c) add(prediction, target, c);
      } else {
        for (int64_t c = 0; c < rows.channels; ++c) {
          if (valid[c * rows.valid_channel_stride]) add(prediction, target, c);
        }
      }
    }
  }
};

}  // namespace

void sum_moments(const MomentRows<float>& rows, double* moments, double* scratch) {
  sdk::run_kernel<SumMoments<float>>(&rows, moments, scratch);
}
void sum_moments(const MomentRows<double>& rows, double* moments, double* scratch) {
  sdk::run_kernel<SumMoments<double>>(&rows, moments, scratch);
}

}  // namespace headroom
