#include "data/normalizer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/measurement.hpp"
#include "data/standardise.hpp"

namespace headroom {

Normalizer Normalizer::measure(const Source& source, const Split& train, const std::string& mode, int64_t max_samples,
                               bool skip_bad_samples, MeasurementNotes* notes) {
  Normalizer normalizer;
  if (mode == "off" || train.length() == 0) return normalizer;
  Measured measured = measure_fields(source, train, mode, max_samples, skip_bad_samples);
  normalizer.statistics_ = std::move(measured.statistics);
  if (notes != nullptr) *notes = std::move(measured.notes);
  return normalizer;
}

void Normalizer::apply(std::span<const Field> fields, std::span<const DLTensor> batch) const {
  for (const FieldStatistics& statistics : statistics_) {
    const auto at =
        std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == statistics.field; });
    if (at == fields.end()) continue;
    const DLTensor& tensor = batch[static_cast<size_t>(at - fields.begin())];
    if (tensor.data == nullptr || tensor.shape[0] == 0) continue;
    const FieldView view = view_of(*at, tensor.shape[0]);
    if (static_cast<size_t>(view.channels) != statistics.mean.size()) {
      throw Error(Exit::bad_input, "data",
                  "field '" + at->name + "' has " + std::to_string(view.channels) +
                      " channels; the normaliser was measured on " + std::to_string(statistics.mean.size()));
    }
    const std::vector<double> inverse_std = inverse(statistics.std);
    if (is_f32(*at)) standardise(static_cast<float*>(tensor.data), view, statistics.mean, inverse_std);
    if (is_f64(*at)) standardise(static_cast<double*>(tensor.data), view, statistics.mean, inverse_std);
  }
}

Normalizer Normalizer::without(const std::vector<std::string>& fields) const {
  Normalizer rest = *this;
  std::erase_if(rest.statistics_, [&](const FieldStatistics& statistics) {
    return std::ranges::find(fields, statistics.field) != fields.end();
  });
  return rest;
}

nlohmann::json Normalizer::to_json() const {
  nlohmann::json all = nlohmann::json::array();
  for (const FieldStatistics& field : statistics_) {
    all.push_back({{"field", field.field}, {"mean", field.mean}, {"std", field.std}, {"samples", field.samples}});
  }
  return all;
}

Normalizer Normalizer::from_json(const nlohmann::json& json) {
  Normalizer normalizer;
  try {
    for (const nlohmann::json& field : json) {
      FieldStatistics statistics{field.at("field"), field.at("mean"), field.at("std"), field.at("samples")};
      if (statistics.mean.size() != statistics.std.size())
        throw Error(Exit::bad_input, "data", "the normaliser's mean and std differ in length");
      normalizer.statistics_.push_back(std::move(statistics));
    }
  } catch (const nlohmann::json::exception& problem) {
    throw Error(Exit::bad_input, "data", std::string("the normaliser cannot be read: ") + problem.what());
  }
  return normalizer;
}

}  // namespace headroom
