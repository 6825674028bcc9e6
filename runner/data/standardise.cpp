#include "data/standardise.hpp"

#include <cstring>

namespace headroom {

namespace {

// `count` neighbours; mean and std of the next one stand `step` (0 or 1) further. Four at a time, which the compiler
// makes instructions of: this runs over every value that is read.
template <class T>
[[gnu::always_inline]] inline void standardise_row(T* at, const double* mean, const double* inverse_std, int64_t count,
                                                   int64_t step) {
  constexpr int64_t lanes = 4;
  typedef T Values __attribute__((vector_size(lanes * sizeof(T))));  // "using" takes no dependent type here
  using Doubles = double __attribute__((vector_size(lanes * sizeof(double))));
  Doubles means{}, factors{};
  for (int64_t i = 0; i < lanes; ++i) means[i] = mean[0], factors[i] = inverse_std[0];
  int64_t done = 0;
  for (; done + lanes <= count; done += lanes) {
    Values values;
    std::memcpy(&values, at + done, sizeof values);
    if (step > 0) std::memcpy(&means, mean + done, sizeof means);
    if (step > 0) std::memcpy(&factors, inverse_std + done, sizeof factors);
    Doubles wide = __builtin_convertvector(values, Doubles);
    standardise_values(wide, means, factors);
    values = __builtin_convertvector(wide, Values);
    std::memcpy(at + done, &values, sizeof values);
  }
  for (; done < count; ++done) {
    auto value = static_cast<double>(at[done]);
    standardise_values(value, mean[done * step], inverse_std[done * step]);
    at[done] = static_cast<T>(value);
  }
}

template <class T>
[[gnu::always_inline]] inline void standardise_rows(T* at, const FieldView& view, const double* mean,
                                                    const double* inverse_std) {
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    if (view.inner == 1) {
      standardise_row(at, mean, inverse_std, view.channels, 1);
      at += view.channels;
      continue;
    }
    for (int64_t channel = 0; channel < view.channels; ++channel, at += view.inner)
      standardise_row(at, mean + channel, inverse_std + channel, view.inner, 0);
  }
}

// The same instructions on wider registers: the same values.
#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2")]] void standardise_wide(T* at, const FieldView& view, const double* mean,
                                              const double* inverse_std) {
  standardise_rows(at, view, mean, inverse_std);
}

bool has_wide_registers() {
  static const bool found = __builtin_cpu_supports("avx2");
  return found;
}
#endif

template <class T>
void standardise_best(T* at, const FieldView& view, const double* mean, const double* inverse_std) {
#if defined(__x86_64__)
  if (has_wide_registers()) return standardise_wide(at, view, mean, inverse_std);
#endif
  standardise_rows(at, view, mean, inverse_std);
}

}  // namespace

std::vector<double> inverse(std::span<const double> deviations) {
  std::vector<double> inverses;
  for (const double deviation : deviations) inverses.push_back(1 / deviation);
  return inverses;
}

void standardise(float* at, const FieldView& view, std::span<const double> mean, std::span<const double> inverse_std) {
  standardise_best(at, view, mean.data(), inverse_std.data());
}

void standardise(double* at, const FieldView& view, std::span<const double> mean, std::span<const double> inverse_std) {
  standardise_best(at, view, mean.data(), inverse_std.data());
}

}  // namespace headroom
