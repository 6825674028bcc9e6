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

// Of a float, or of all floats of a Vector; Whole: of its size.
template <class Float, class Whole>
HEADROOM_KERNEL_BODY Float exp_by_polynomial(Float x) {
  const Float low = Float{} - 87.0F, high = Float{} + 88.0F;
  const Float above = x < low ? low : x, clamped = above > high ? high : above;
  const Float scaled = clamped * 1.44269504088896341F;
  const Float shifted = scaled + 12582912.0F;  // 1.5 * 2^23: the sum's low bits are the nearest whole number
  const Float whole = shifted - 12582912.0F;
  const Float rest = (clamped - whole * 0.693359375F) + whole * 2.12194440e-4F;
  Float sum = Float{} + 1.9875691500e-4F;
  sum = sum * rest + 1.3981999507e-3F;
  sum = sum * rest + 8.3334519073e-3F;
  sum = sum * rest + 4.1665795894e-2F;
  sum = sum * rest + 1.6666665459e-1F;
  sum = sum * rest + 5.0000001201e-1F;
  const Float value = sum * rest * rest + rest + 1.0F;
  const Whole power = (std::bit_cast<Whole>(shifted) - 0x4B400000 + 127) << 23;
  return value * std::bit_cast<Float>(power);
}

// Within 2 units in the last place; clamped to what has a normal result.
HEADROOM_KERNEL_BODY float vector_exp(float x) { return exp_by_polynomial<float, uint32_t>(x); }
template <int lanes>
HEADROOM_KERNEL_BODY Vector<lanes> vector_exp(Vector<lanes> x) {
  return exp_by_polynomial<Vector<lanes>, WholeVector<lanes>>(x);
}
HEADROOM_KERNEL_BODY double vector_exp(double x) { return std::exp(x); }

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
