// A trained model of the test plugin predicting_model: 4 steps of 3 channels, which the host standardises, to 4 steps
// of 2 channels, which the source does.
#pragma once

#include <string>
#include <vector>

#include "record/trained_model.hpp"

namespace headroom {

inline constexpr float head_weight[2][3] = {{0.5F, -1.0F, 0.25F}, {1.5F, 0.75F, -0.5F}};
inline constexpr float head_bias[2] = {0.125F, -0.25F};

// `plugin` and `mistake`: see predicting_model.cpp.
inline TrainedModel predicting(const std::string& mistake = "none", const std::string& plugin = "predicting_model") {
  using Json = nlohmann::json;
  const auto channel = [](const char* name, const char* unit, double mean, double std) {
    return Json{{"name", name}, {"unit", unit}, {"mean", mean}, {"std", std}};
  };
  const auto field = [](const char* name, int channels, bool normalize, const Json& described) {
    return Json{{"name", name},           {"unit", "V"},           {"dtype", "float32"},
                {"shape", {4, channels}}, {"axes", {"time", ""}},  {"channel_axis", 1},
                {"normalize", normalize}, {"channels", described}, {"sample_rate_hz", 0.0}};
  };
  TrainedModel model;
  model.plugin = model.id = plugin;
  model.options = "mistake = \"" + mistake + "\"";
  model.precision = "fp32";
  model.seed = 3;
  model.step = 7;
  model.run = {{"id", "a-run"}, {"step", 7}};
  model.fields =
      Json::array({field("x", 3, true, Json::array()),
                   field("y", 2, false, Json::array({channel("left", "rad", 10, 2), channel("right", "mm", 20, 4)}))});
  model.outputs = Json::array({{{"name", "prediction"}, {"role", "prediction"}, {"unit", ""}}});
  model.normalizer = Json::array({{{"field", "x"}, {"mean", {1, 2, 3}}, {"std", {2, 4, 8}}, {"samples", 9}}});
  const auto bytes = [](const auto& values) { return std::as_bytes(std::span(&values, 1)); };
  model.weights = {{"head.weight", {kDLFloat, 32, 1}, {2, 3}, bytes(head_weight)},
                   {"head.bias", {kDLFloat, 32, 1}, {2}, bytes(head_bias)}};
  model.place = "a-test";
  return model;
}

// What it predicts of one step, as measured.
inline std::vector<double> predicted(const std::vector<double>& measured) {
  const double mean[] = {1, 2, 3}, std[] = {2, 4, 8}, target_mean[] = {10, 20}, target_std[] = {2, 4};
  std::vector<double> result;
  for (int row = 0; row < 2; ++row) {
    double sum = head_bias[row];
    for (size_t c = 0; c < 3; ++c) sum += head_weight[row][c] * (measured[c] - mean[c]) / std[c];
    result.push_back(sum * target_std[row] + target_mean[row]);
  }
  return result;
}

}  // namespace headroom
