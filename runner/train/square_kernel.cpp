#include "train/square_kernel.hpp"

#include <array>

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {

namespace {

constexpr int64_t lanes = 32;  // sums that do not wait for each other

template <class T>
struct SumSquares {
  static HEADROOM_KERNEL_BODY void run(const T* values, int64_t count, double* total) {
    std::array<double, lanes> sums{};
    const int64_t whole = count / lanes * lanes;
    for (int64_t i = 0; i < whole; i += lanes) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const auto value = static_cast<double>(values[i + lane]);
        sums[lane] += value * value;
      }
    }
    for (int64_t i = whole; i < count; ++i) {
      const auto value = static_cast<double>(values[i]);
      sums[i - whole] += value * value;
    }
    *total = 0.0;
    for (const double sum : sums) *total += sum;
  }
};

// As SumSquares, of what it leaves: every value divided.
template <class T>
struct DivideAndSumSquares {
  static HEADROOM_KERNEL_BODY void run(T* values, int64_t count, T divisor, double* total) {
    std::array<double, lanes> sums{};
    const int64_t whole = count / lanes * lanes;
    for (int64_t i = 0; i < whole; i += lanes) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const T divided = values[i + lane] / divisor;
        values[i + lane] = divided;
        sums[lane] += static_cast<double>(divided) * static_cast<double>(divided);
      }
    }
    for (int64_t i = whole; i < count; ++i) {
      values[i] /= divisor;
      sums[i - whole] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    *total = 0.0;
    for (const double sum : sums) *total += sum;
  }
};

template <class T>
double sum_divided(T* values, int64_t count, double divisor) {
  double total = 0.0;
  sdk::run_kernel<DivideAndSumSquares<T>>(values, count, static_cast<T>(divisor), &total);
  return total;
}

template <class T>
double sum(const T* values, int64_t count) {
  double total = 0.0;
  sdk::run_kernel<SumSquares<T>>(values, count, &total);
  return total;
}

}  // namespace

double sum_of_squares(const float* values, int64_t count) { return sum(values, count); }
double sum_of_squares(const double* values, int64_t count) { return sum(values, count); }
double divide_and_sum_squares(float* values, int64_t count, double divisor) {
  return sum_divided(values, count, divisor);
}
double divide_and_sum_squares(double* values, int64_t count, double divisor) {
  return sum_divided(values, count, divisor);
}

}  // namespace headroom
