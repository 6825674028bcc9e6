// Outputs to measure, and what the textbook's formulas over everything concatenated, in long double, say of them.
#pragma once

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <map>

#include "error.hpp"
#include "metrics/metrics.hpp"

namespace headroom {

inline const std::vector<OutputInfo> kOutputs = {{"pose", "rad"}, {"truth", "", HR_TARGET}, {"valid", "", HR_MASK}};

inline std::vector<OutputPair> pairs(bool masked, const std::vector<MetricInfo>& declared = {}) {
  return pair_outputs("net", std::span(kOutputs).first(masked ? 3 : 2), declared);
}

// What the metrics should be: a value each, and one a channel.
struct Expected {
  std::map<std::string, double> values;
  std::map<std::string, std::vector<double>> channels;
};

using Number = long double;

// `micro_batches` in the order of the model's outputs; every tensor of one as wide as its prediction.
inline Expected textbook(const std::vector<std::vector<at::Tensor>>& micro_batches) {
  const at::Tensor& first = micro_batches.front()[0];
  const int64_t channels = first.dim() > 1 ? first.size(-1) : 1;
  std::vector<std::vector<std::pair<Number, Number>>> elements(channels);  // (prediction, target) of what is valid
  for (const auto& outputs : micro_batches) {
    at::Tensor mask = outputs.size() > 2 ? outputs[2].to(at::kDouble) : at::ones_like(outputs[0]).to(at::kDouble);
    while (mask.dim() < outputs[0].dim()) mask = mask.unsqueeze(-1);
    const auto flat = [](const at::Tensor& tensor) { return tensor.to(at::kDouble).contiguous().flatten(); };
    const at::Tensor p = flat(outputs[0]), t = flat(outputs[1]), m = flat(mask.expand_as(outputs[0]));
    for (int64_t i = 0; i < p.numel(); ++i) {
      if (m[i].item<double>() != 0.0) elements[i % channels].emplace_back(p[i].item<double>(), t[i].item<double>());
    }
  }
  Expected expected;
  Number n = 0, squared = 0, absolute = 0, r2_sum = 0, with_r2 = 0;
  for (const auto& channel : elements) {
    Number mean = 0, variation = 0, channel_squared = 0, channel_absolute = 0;
    for (const auto& [p, t] : channel) mean += t / channel.size();
    bool constant = true;
    for (const auto& [p, t] : channel) {
      constant = constant && t == channel.front().second;
      variation += (t - mean) * (t - mean);
      channel_squared += (p - t) * (p - t);
      channel_absolute += std::abs(p - t);
    }
    const Number r2 = constant ? NAN : 1 - channel_squared / variation, count = channel.size();
    expected.channels["val/mse"].push_back(channel_squared / count);
    expected.channels["val/mae"].push_back(channel_absolute / count);
    expected.channels["val/rmse"].push_back(std::sqrt(channel_squared / count));
    expected.channels["val/r2"].push_back(r2);
    n += count, squared += channel_squared, absolute += channel_absolute;
    if (!constant) r2_sum += r2, ++with_r2;
  }
  if (n > 0) {
    expected.values = {{"val/mse", squared / n}, {"val/mae", absolute / n}, {"val/rmse", std::sqrt(squared / n)}};
  }
  if (with_r2 > 0) expected.values["val/r2"] = r2_sum / with_r2;
  if (channels == 1) expected.channels.clear();
  return expected;
}

inline void expect_equal(const Measured& measured, const Expected& expected, double limit = 1e-12) {
  ASSERT_EQ(measured.values.size(), expected.values.size());
  for (const auto& [name, value] : measured.values) {
    ASSERT_TRUE(expected.values.contains(name)) << name;
    EXPECT_NEAR(value, expected.values.at(name), limit * std::max(1.0, std::abs(value))) << name;
  }
  EXPECT_EQ(measured.channels.size(), expected.values.empty()     ? 0
                                      : measured.channels.empty() ? 0
                                                                  : expected.values.size());
  for (const auto& [name, values] : measured.channels.items()) {
    const std::vector<double>& wanted = expected.channels.at(name);
    ASSERT_EQ(values.size(), wanted.size()) << name;
    for (size_t c = 0; c < wanted.size(); ++c) {
      if (!std::isfinite(wanted[c])) {
        EXPECT_TRUE(values[c].is_null()) << name << ' ' << c;
      } else {
        EXPECT_NEAR(values[c].get<double>(), wanted[c], limit * std::max(1.0, std::abs(wanted[c]))) << name << ' ' << c;
      }
    }
  }
}

inline Measured measure(const std::vector<std::vector<at::Tensor>>& micro_batches,
                        OutputMetrics::Keep keep = OutputMetrics::Keep::sums) {
  OutputMetrics metrics(pairs(micro_batches.front().size() > 2), keep);
  for (const auto& outputs : micro_batches) metrics.add(outputs);
  return metrics.measured("val");
}

// Targets that differ from channel to channel, predictions near them.
inline std::vector<at::Tensor> outputs_of(std::vector<int64_t> shape, at::ScalarType dtype = at::kFloat) {
  const at::Tensor scale = shape.size() > 1 ? torch::linspace(0.5, 3.0, shape.back()) : torch::ones({});
  const at::Tensor target = (torch::randn(shape) + 2.0) * scale;
  return {(target + 0.3 * torch::randn(shape)).to(dtype), target.to(dtype)};
}

inline std::vector<at::Tensor> with_mask(std::vector<at::Tensor> outputs, const std::vector<int64_t>& shape,
                                         at::ScalarType dtype = at::kBool) {
  outputs.push_back(torch::rand(shape).gt(0.4).to(dtype));
  return outputs;
}

inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_TRUE(error.exit_code() == Exit::plugin || error.exit_code() == Exit::bad_input);
    return error.what();
  }
  return "accepted";
}

}  // namespace headroom
