#include "metrics/moment_kernel.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {

namespace {

// Beside each other in registers: `chains` of `lanes` channels each. Sums of one channel wait for each other, those of
// several do not.
template <class T, int lanes, int chains>
struct Channels {
  // "using" takes no dependent type here
  typedef double Sums __attribute__((vector_size(lanes * sizeof(double)), aligned(alignof(double)), may_alias));
  static constexpr int64_t count = int64_t{lanes} * chains;

  static HEADROOM_KERNEL_BODY Sums read(const T* values) {
    // GCC converts a loop's values in one instruction, and a vector's in five.
    alignas(Sums) double wide[lanes];
    for (int i = 0; i < lanes; ++i) wide[i] = static_cast<double>(values[i]);
    return *reinterpret_cast<const Sums*>(wide);
  }
  static HEADROOM_KERNEL_BODY void write(double* sums, Sums value) { *reinterpret_cast<Sums*>(sums) = value; }
  static HEADROOM_KERNEL_BODY Sums magnitude(Sums value) { return value < 0.0 ? -value : value; }
};

template <class T>
struct SumMoments {
  static HEADROOM_KERNEL_BODY void run(const MomentRows<T>* rows, double* moments, double* scratch) {
    const int64_t channels = rows->channels;
    std::fill_n(moments, Moment::rows * channels, 0.0);
    // One value of the mask, or none, for a row: no branch between channels.
    if (rows->valid != nullptr && rows->valid_channel_stride != 0) return each_by_itself(*rows, moments, scratch);
    int64_t first = 0;
    while (first < rows->rows && !counts(*rows, first)) ++first;
    if (first == rows->rows) return;
    int64_t c = 0;
    for (; c + 8 <= channels; c += 8) together<Channels<T, 4, 2>>(*rows, first, c, moments);
    for (; c + 4 <= channels; c += 4) together<Channels<T, 4, 1>>(*rows, first, c, moments);
    for (; c < channels; ++c) together<Channels<T, 1, 1>>(*rows, first, c, moments);
  }

 private:
  static HEADROOM_KERNEL_BODY bool counts(const MomentRows<T>& rows, int64_t row) {
    return rows.valid == nullptr || rows.valid[row * rows.valid_row_stride];
  }

  // Channels from `c` on. `first`: the first row that counts.
  template <class Block>
  static HEADROOM_KERNEL_BODY void together(const MomentRows<T>& rows, int64_t first, int64_t c, double* moments) {
    using Sums = typename Block::Sums;
    constexpr int chains = static_cast<int>(Block::count * sizeof(double) / sizeof(Sums));
    constexpr int64_t lanes = Block::count / chains;
    Sums origin[chains], shift[chains], square[chains], absolute[chains], variation[chains];
    for (int k = 0; k < chains; ++k) {
      // A value of the channel itself, so that a target that never changes has a variation of exactly zero.
      origin[k] = Block::read(rows.target + first * rows.channels + c + k * lanes);
      shift[k] = square[k] = absolute[k] = variation[k] = Sums{};
    }
    int64_t count = 0;
    for (int64_t r = first; r < rows.rows; ++r) {
      if (!counts(rows, r)) continue;
      ++count;
      const T* const prediction = rows.prediction + r * rows.channels + c;
      const T* const target = rows.target + r * rows.channels + c;
#pragma GCC unroll 2
      for (int k = 0; k < chains; ++k) {
        const Sums value = Block::read(target + k * lanes), error = Block::read(prediction + k * lanes) - value;
        shift[k] += value - origin[k];
        square[k] += error * error;
        absolute[k] += Block::magnitude(error);
      }
    }
    for (int k = 0; k < chains; ++k) shift[k] /= static_cast<double>(count);
    // With the mean known, a second pass sums the deviations: sums of squares would cancel.
    for (int64_t r = first; r < rows.rows; ++r) {
      if (!counts(rows, r)) continue;
      const T* const target = rows.target + r * rows.channels + c;
#pragma GCC unroll 2
      for (int k = 0; k < chains; ++k) {
        const Sums deviation = (Block::read(target + k * lanes) - origin[k]) - shift[k];
        variation[k] += deviation * deviation;
      }
    }
    for (int k = 0; k < chains; ++k) {
      double* const sums = moments + c + k * lanes;
      Block::write(sums + Moment::count * rows.channels, Sums{} + static_cast<double>(count));
      Block::write(sums + Moment::mean * rows.channels, origin[k] + shift[k]);
      Block::write(sums + Moment::variation * rows.channels, variation[k]);
      Block::write(sums + Moment::squared_error * rows.channels, square[k]);
      Block::write(sums + Moment::absolute_error * rows.channels, absolute[k]);
    }
  }

  // The same where each channel of a row counts or does not. Elements that do not may be NaN.
  static HEADROOM_KERNEL_BODY void each_by_itself(const MomentRows<T>& rows, double* moments, double* scratch) {
    const int64_t channels = rows.channels;
    double *const count = moments + Moment::count * channels, *const mean = moments + Moment::mean * channels;
    double* const variation = moments + Moment::variation * channels;
    double* const square = moments + Moment::squared_error * channels;
    double* const absolute = moments + Moment::absolute_error * channels;
    double *const origin = scratch, *const shift = scratch + channels;
    std::fill_n(scratch, 2 * channels, 0.0);
    each_that_counts(
        rows, [&](T prediction, T target, int64_t c) __attribute__((always_inline)) {
          const auto value = static_cast<double>(target), error = static_cast<double>(prediction) - value;
          origin[c] = count[c] == 0.0 ? value : origin[c];
          shift[c] += (value - origin[c]);
          count[c] += 1.0;
          square[c] += error * error;
          absolute[c] += std::fabs(error);
        });
    for (int64_t c = 0; c < channels; ++c) {
      shift[c] /= std::max(count[c], 1.0);
      mean[c] = origin[c] + shift[c];
    }
    each_that_counts(
        rows, [&](T, T target, int64_t c) __attribute__((always_inline)) {
          const double deviation = (static_cast<double>(target) - origin[c]) - shift[c];
          variation[c] += deviation * deviation;
        });
  }

  // add(prediction, target, channel)
  template <class Add>
  static HEADROOM_KERNEL_BODY void each_that_counts(const MomentRows<T>& rows, Add add) {
    for (int64_t r = 0; r < rows.rows; ++r) {
      const bool* const valid = rows.valid + r * rows.valid_row_stride;
      for (int64_t c = 0; c < rows.channels; ++c) {
        const int64_t i = r * rows.channels + c;
        if (valid[c * rows.valid_channel_stride]) add(rows.prediction[i], rows.target[i], c);
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

// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
void add_moments(double* sums, const double* moments, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    const auto of = [&](int64_t row) { return moments[row * channels + c]; };
    const auto sum = [&](int64_t row) -> double& { return sums[row * channels + c]; };
    const double n = sum(Moment::count), share = of(Moment::count) / std::max(n + of(Moment::count), 1.0);
    const double delta = of(Moment::mean) - sum(Moment::mean);
    sum(Moment::mean) += delta * share;
    sum(Moment::variation) += of(Moment::variation) + delta * delta * n * share;
    for (const int64_t row : {Moment::count, Moment::squared_error, Moment::absolute_error}) sum(row) += of(row);
  }
}

}  // namespace headroom
