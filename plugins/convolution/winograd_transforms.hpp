// The transforms of Winograd's minimal filtering F(side, 3), in one dimension and in both (Lavin and Gray, "Fast
// algorithms for convolutional neural networks", 2015): y = A^T ((G g) * (B^T d)) for `side` outputs from side + 2
// inputs d and a kernel g of 3. Of vectors, a channel in each lane. Torch-free.
//
// The points of F(2, 3) are 0, 1, -1 and infinity. Those of F(4, 3) are 0, +-3/4, +-3/2 and infinity: the error in
// float32 is a third of that with the usual 0, +-1, +-2, and like that of a plain sum.
#pragma once

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {

template <int side>
struct Filter;

template <>
struct Filter<2> {
  struct Input {  // B^T d
    static constexpr int from = 4, to = 4;
    template <class V>
    static HEADROOM_KERNEL_BODY void run(const V* d, V* t) {
      t[0] = d[0] - d[2];
      t[1] = d[1] + d[2];
      t[2] = d[2] - d[1];
      t[3] = d[1] - d[3];
    }
  };
  struct Output {  // A^T m
    static constexpr int from = 4, to = 2;
    template <class V>
    static HEADROOM_KERNEL_BODY void run(const V* m, V* y) {
      y[0] = m[0] + m[1] + m[2];
      y[1] = m[1] - m[2] - m[3];
    }
  };
  struct OutputGradient {  // A g
    static constexpr int from = 2, to = 4;
    template <class V>
    static HEADROOM_KERNEL_BODY void run(const V* g, V* m) {
      m[0] = g[0];
      m[1] = g[0] + g[1];
      m[2] = g[0] - g[1];
      m[3] = -g[1];
    }
  };
  struct Kernel {  // G g
    static constexpr int from = 3, to = 4;
    template <class V>
    static HEADROOM_KERNEL_BODY void run(const V* g, V* t) {
      const V even = 0.5F * (g[0] + g[2]), odd = 0.5F * g[1];
      t[0] = g[0];
      t[1] = even + odd;
      t[2] = even - odd;
      t[3] = g[2];
    }
  };
  struct KernelGradient {  // G^T t
    static constexpr int from = 4, to = 3;
    template <class V>
    static HEADROOM_KERNEL_BODY void run(const V* t, V* g) {
      const V even = 0.5F * (t[1] + t[2]);
      g[0] = t[0] + even;
      g[1] = 0.5F * (t[1] - t[2]);
      g[2] = t[3] + even;
    }
  };
};

template <>
struct Filter<4> {
  static constexpr float p = 0.75F, q = 1.5F, p2 = p * p, q2 = q * q;
  static constexpr float at_0 = 1 / (p2 * q2), at_p = 1 / (2 * p2 * (p2 - q2)), at_q = 1 / (2 * q2 * (q2 - p2));

  struct Input {
    static constexpr int from = 6, to = 6;
    template <class V>
    static HEADROOM_KERNEL_BODY void run(const V* d, V* t) {
      const V p_even = d[4] - q2 * d[2], p_odd = p * (d[3] - q2 * d[1]);
      const V q_even = d[4] - p2 * d[2], q_odd = q * (d[3] - p2 * d[1]);
      t[0] = p2 * q2 * d[0] - (p2 + q2) * d[2] + d[4];
      t[1] = p_even + p_odd;
      t[2] = p_even - p_odd;
      t[3] = q_even + q_odd;
      t[4] = q_even - q_odd;
      t[5] = p2 * q2 * d[1] - (p2 + q2) * d[3] + d[5];
    }
  };
  struct Output {
    static constexpr int from = 6, to = 4;
    template <class V>
    static HEADROOM_KERNEL_BODY void run(const V* m, V* y) {
      const V p_sum = m[1] + m[2], p_difference = p * (m[1] - m[2]);
      const V q_sum = m[3] + m[4], q_difference = q * (m[3] - m[4]);
      y[0] = m[0] + p_sum + q_sum;
      y[1] = p_difference + q_difference;
      y[2] = p2 * p_sum + q2 * q_sum;
      y[3] = p2 * p_difference + q2 * q_difference + m[5];
    }
  };
  struct OutputGradient {
    static constexpr int from = 4, to = 6;
    template <class V>
    static HEADROOM_KERNEL_BODY void run(const V* g, V* m) {
      const V p_even = g[0] + p2 * g[2], p_odd = p * (g[1] + p2 * g[3]);
      const V q_even = g[0] + q2 * g[2], q_odd = q * (g[1] + q2 * g[3]);
      m[0] = g[0];
      m[1] = p_even + p_odd;
      m[2] = p_even - p_odd;
      m[3] = q_even + q_odd;
      m[4] = q_even - q_odd;
      m[5] = g[3];
    }
  };
  struct Kernel {
    static constexpr int from = 3, to = 6;
    template <class V>
    static HEADROOM_KERNEL_BODY void run(const V* g, V* t) {
      const V p_even = at_p * (g[0] + p2 * g[2]), p_odd = at_p * p * g[1];
      const V q_even = at_q * (g[0] + q2 * g[2]), q_odd = at_q * q * g[1];
      t[0] = at_0 * g[0];
      t[1] = p_even + p_odd;
      t[2] = p_even - p_odd;
      t[3] = q_even + q_odd;
      t[4] = q_even - q_odd;
      t[5] = g[2];
    }
  };
  struct KernelGradient {
    static constexpr int from = 6, to = 3;
    template <class V>
    static HEADROOM_KERNEL_BODY void run(const V* t, V* g) {
      const V p_sum = at_p * (t[1] + t[2]), q_sum = at_q * (t[3] + t[4]);
      g[0] = at_0 * t[0] + p_sum + q_sum;
      g[1] = at_p * p * (t[1] - t[2]) + at_q * q * (t[3] - t[4]);
      g[2] = p2 * p_sum + q2 * q_sum + t[5];
    }
  };
};

// Of columns, and then of rows.
template <class Transform, class V>
HEADROOM_KERNEL_BODY void both_ways(const V (&x)[Transform::from][Transform::from],
                                    V (&y)[Transform::to][Transform::to]) {
  V half[Transform::to][Transform::from];
  for (int j = 0; j < Transform::from; ++j) {
    V column[Transform::from], result[Transform::to];
    for (int i = 0; i < Transform::from; ++i) column[i] = x[i][j];
    Transform::run(column, result);
    for (int i = 0; i < Transform::to; ++i) half[i][j] = result[i];
  }
  for (int i = 0; i < Transform::to; ++i) Transform::run(half[i], y[i]);
}

}  // namespace headroom
