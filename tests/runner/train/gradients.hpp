// Gradients of windows, to be compared between splits.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <vector>

#include "train/window.hpp"

namespace headroom {

struct WindowResult {
  std::vector<at::Tensor> gradients;
  double loss = 0.0, weight = 0.0;
};

inline WindowResult take(Window& window) {
  WindowResult result;
  result.weight = window.divide();
  result.loss = window.sums().loss();
  for (const at::Tensor& gradient : window.gradients()) result.gradients.push_back(gradient.clone());
  return result;
}

// The largest difference of any gradient, in units of its tensor's largest value.
inline double difference(const WindowResult& a, const WindowResult& b) {
  EXPECT_EQ(a.gradients.size(), b.gradients.size());
  double largest = 0.0;
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    const double scale = a.gradients[i].abs().max().item<double>();
    const double apart = (a.gradients[i] - b.gradients[i]).abs().max().item<double>();
    if (apart > 0.0) largest = std::max(largest, scale > 0.0 ? apart / scale : HUGE_VAL);
  }
  return largest;
}

inline double difference(const std::vector<WindowResult>& a, const std::vector<WindowResult>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0.0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, difference(a[i], b[i]));
  return largest;
}

}  // namespace headroom
