#include "data/standardise.hpp"

#include <cstring>

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {

namespace {

template <class T, int64_t lanes>
struct Vector {
  typedef T Type __attribute__((vector_size(lanes * sizeof(T))));  // "using" takes no dependent type here
};

// `count` neighbours; mean and std of the next one stand `step` (0 or 1) further. Several at a time, which the compiler
// makes instructions of: this runs over every value that is read.
template <int64_t lanes, class T>
[[gnu::always_inline]] inline void standardise_row(T* at, const double* mean, const double* inverse_std, int64_t count,
                                                   int64_t step) {
  using Values = typename Vector<T, lanes>::Type;
  using Doubles = typename Vector<double, lanes>::Type;
  Doubles means{}, factors{};
  // These stay where step is 0; otherwise each round loads its own.
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
  // The same arithmetic, so that a value does not depend on its place.
  for (; done < count; ++done) {
    auto value = static_cast<double>(at[done]);
    standardise_values(value, mean[done * step], inverse_std[done * step]);
    at[done] = static_cast<T>(value);
  }
}

template <int64_t lanes, class T>
[[gnu::always_inline]] inline void standardise_rows(T* at, const FieldView& view, const double* mean,
                                                    const double* inverse_std) {
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    // Channels are the last axis: neighbours have statistics of their own.
    if (view.inner == 1) {
      standardise_row<lanes>(at, mean, inverse_std, view.channels, 1);
      at += view.channels;
      continue;
    }
    for (int64_t channel = 0; channel < view.channels; ++channel, at += view.inner)
      standardise_row<lanes>(at, mean + channel, inverse_std + channel, view.inner, 0);
  }
}

// The same instructions on wider registers: the same values.
#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2")]] void standardise_wide(T* at, const FieldView& view, const double* mean,
                                              const double* inverse_std) {
  standardise_rows<4>(at, view, mean, inverse_std);
}

template <class T>
[[gnu::target("avx512f,prefer-vector-width=512")]] void standardise_widest(T* at, const FieldView& view,
                                                                           const double* mean,
                                                                           const double* inverse_std) {
  standardise_rows<8>(at, view, mean, inverse_std);
}

template <class T>
auto* best_standardise() {
  if (sdk::cpu_isa() == sdk::CpuIsa::avx512) return &standardise_widest<T>;
  return sdk::cpu_isa() == sdk::CpuIsa::avx2 ? &standardise_wide<T> : &standardise_rows<4, T>;
}
#else
template <class T>
auto* best_standardise() {
  return &standardise_rows<4, T>;
}
#endif

template <class T>
void standardise_best(T* at, const FieldView& view, const double* mean, const double* inverse_std) {
  static auto* const best = best_standardise<T>();
  best(at, view, mean, inverse_std);
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
