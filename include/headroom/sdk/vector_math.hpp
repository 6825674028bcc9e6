// exp, tanh and the logistic function for kernels (cpu_kernel.hpp), in a form that the compiler turns into vector
// instructions: compile with -O3 -fno-math-errno -fno-trapping-math. In double they are the C library's. Needs no
// LibTorch.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "headroom/sdk/cpu_kernel.hpp"
#include "headroom/sdk/vectors.hpp"

namespace headroom::sdk {

// Within 2 units in the last place; clamped to what has a normal result.
HEADROOM_KERNEL_BODY float vector_exp(float x) {
  const float clamped = x < -87.0F ? -87.0F : (x > 88.0F ? 88.0F : x);
  const float scaled = clamped * 1.44269504088896341F;
  const float shifted = scaled + 12582912.0F;  // 1.5 * 2^23: the sum's low bits are the nearest whole number
  const float whole = shifted - 12582912.0F;
  const float rest = (clamped - whole * 0.693359375F) + whole * 2.12194440e-4F;
  float sum = 1.9875691500e-4F;
  sum = sum * rest + 1.3981999507e-3F;
  sum = sum * rest + 8.3334519073e-3F;
  sum = sum * rest + 4.1665795894e-2F;
  sum = sum * rest + 1.6666665459e-1F;
  sum = sum * rest + 5.0000001201e-1F;
  const float value = sum * rest * rest + rest + 1.0F;
  const auto power = static_cast<uint32_t>(std::bit_cast<int32_t>(shifted) - 0x4B400000 + 127) << 23;
  return value * std::bit_cast<float>(power);
}
HEADROOM_KERNEL_BODY double vector_exp(double x) { return std::exp(x); }

// The same for the numbers of a vector (vectors.hpp).
template <int lanes>
HEADROOM_KERNEL_BODY Vector<lanes> vector_exp(Vector<lanes> x) {
  const Vector<lanes> low = Vector<lanes>{} - 87.0F, high = Vector<lanes>{} + 88.0F;
  const Vector<lanes> above = x < low ? low : x, clamped = above > high ? high : above;
  const Vector<lanes> scaled = clamped * 1.44269504088896341F;
  const Vector<lanes> shifted = scaled + 12582912.0F, whole = shifted - 12582912.0F;
  const Vector<lanes> rest = (clamped - whole * 0.693359375F) + whole * 2.12194440e-4F;
  Vector<lanes> sum = Vector<lanes>{} + 1.9875691500e-4F;
  sum = sum * rest + 1.3981999507e-3F;
  sum = sum * rest + 8.3334519073e-3F;
  sum = sum * rest + 4.1665795894e-2F;
  sum = sum * rest + 1.6666665459e-1F;
  sum = sum * rest + 5.0000001201e-1F;
  const Vector<lanes> value = sum * rest * rest + rest + 1.0F;
  const auto power = (std::bit_cast<WholeVector<lanes>>(shifted) - 0x4B400000 + 127) << 23;
  return value * std::bit_cast<Vector<lanes>>(power);
}

template <class T>
HEADROOM_KERNEL_BODY T vector_logistic(T x) {
  return T(1) / (T(1) + vector_exp(-x));
}
HEADROOM_KERNEL_BODY float vector_tanh(float x) {
  const float far = 1.0F - 2.0F / (vector_exp(2.0F * x) + 1.0F), square = x * x;
  float sum = -5.70498872745e-3F;
  sum = sum * square + 2.06390887954e-2F;
  sum = sum * square - 5.37397155531e-2F;
  sum = sum * square + 1.33314422036e-1F;
  sum = sum * square - 3.33332819422e-1F;
  const float near = sum * square * x + x;  // where `far` would cancel
  return square < 0.390625F ? near : far;
}
HEADROOM_KERNEL_BODY double vector_tanh(double x) { return std::tanh(x); }

}  // namespace headroom::sdk
