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

template <class T>
double sum(const T* values, int64_t count) {
  double total = 0.0;
  sdk::run_kernel<SumSquares<T>>(values, count, &total);
  return total;
}

}  // namespace

double sum_of_squares(const float* values, int64_t count) { return sum(values, count); }
double sum_of_squares(const double* values, int64_t count) { return sum(values, count); }

}  // namespace headroom
