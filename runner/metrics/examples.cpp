#include "metrics/examples.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "metrics/picture.hpp"
#include "record/run_folder.hpp"
#include "report/examples.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

constexpr uint64_t most_samples = 3;
// With so many a page stays small and readable; what is left out is left out evenly.
constexpr int64_t most_channels = 4, most_points = 240, most_inputs = 2;

// Five digits, which a picture cannot tell from all of them; null where it is not finite.
Json shown_number(double value) {
  if (!std::isfinite(value)) return {};
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.5g", value);
  return std::strtod(text.data(), nullptr);
}

Json numbers_of(const at::Tensor& values, const at::Tensor& valid) {
  Json list = Json::array();
  for (int64_t i = 0; i < values.numel(); ++i)
    list.push_back(valid.defined() && !valid[i].item<bool>() ? Json() : shown_number(values[i].item<double>()));
  return list;
}

// [time, channels] of one sample.
Json series_json(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& mask) {
  const int64_t points = prediction.size(0), channels = prediction.size(1);
  const int64_t stride = (points + most_points - 1) / most_points, shown = std::min(channels, most_channels);
  Json json = {{"kind", "series"}, {"stride", stride}, {"channels", Json::array()}};
  for (int64_t i = 0; i < shown; ++i) {
    // Evenly spaced, the first one always.
    const int64_t channel = i * channels / shown;
    const auto line = [&](const at::Tensor& values) {
      return values.select(1, channel).slice(0, 0, points, stride).contiguous();
    };
    const at::Tensor valid = mask.defined() ? line(mask) : mask;
    json["channels"].push_back({{"channel", channel},
                                {"prediction", numbers_of(line(prediction), {})},
                                {"target", numbers_of(line(target), valid)}});
  }
  return json;
}

// Of the model's input, those that are pictures and not the target itself.
Json inputs_json(std::span<const at::Tensor> fields, const std::vector<std::string>& names, int64_t number,
                 const at::Tensor& target) {
  Json inputs = Json::array();
  for (size_t i = 0; i < fields.size() && static_cast<int64_t>(inputs.size()) < most_inputs; ++i) {
    if (!fields[i].defined() || fields[i].dim() < 2) continue;
    const auto picture = picture_of(fields[i].select(0, number));
    if (!picture || (picture->sizes() == target.sizes() && at::equal(*picture, target))) continue;
    inputs.push_back({{"name", names[i]}, {"picture", shown_picture(*picture, range_of(*picture))}});
  }
  return inputs;
}

// Of the mask, which has the prediction's leading axes, one sample.
at::Tensor valid_part(const at::Tensor& mask, const at::Tensor& prediction, int64_t number) {
  if (!mask.defined()) return mask;
  return with_trailing_axes(mask, prediction.dim()).expand(prediction.sizes()).select(0, number).to(at::kCPU).ne(0);
}

// null where there is nothing to draw: one value, or axes of unknown meaning.
Json output_json(const PairTensors& tensors, int64_t number, std::span<const at::Tensor> fields,
                 const std::vector<std::string>& field_names) {
  const auto sample_of = [&](const at::Tensor& all) { return all.select(0, number).to(at::kCPU, at::kFloat); };
  const at::Tensor prediction = sample_of(tensors.prediction), target = sample_of(tensors.target);
  if (const auto picture = picture_of(target)) {
    const PictureRange range = range_of(*picture);
    return {{"kind", "picture"},
            {"inputs", inputs_json(fields, field_names, number, *picture)},
            // In the range of the target, so that a prediction that is too dark looks dark. Its shape is the target's.
            {"prediction", shown_picture(*picture_of(prediction), range)},
            {"target", shown_picture(*picture, range)}};
  }
  if (prediction.dim() != 2 || prediction.size(0) < 2) return {};
  return series_json(prediction, target, valid_part(tensors.mask, tensors.prediction, number));
}

}  // namespace

Examples::Examples(const std::filesystem::path& run, std::vector<OutputPair> pairs, std::vector<OutputInfo> outputs,
                   std::span<const Field> fields, uint64_t length)
    : file_(run / examples_file), pairs_(std::move(pairs)), outputs_(std::move(outputs)) {
  // A picture of scores says nothing: the confusion matrix is what a page shows of classes.
  std::erase_if(pairs_, [](const OutputPair& pair) { return pair.classes.has_value(); });
  for (const Field& field : fields) fields_.push_back(field.name);
  const uint64_t count = pairs_.empty() ? 0 : std::min(length, most_samples);
  // The middle of each of `count` equal parts: neighbours are often alike.
  for (uint64_t i = 0; i < count; ++i) chosen_.push_back((2 * i + 1) * length / (2 * count));
  // A resumed run keeps the first evaluation of the whole run.
  const Json written = read_json_file(file_);
  if (written.is_object()) first_ = written.value("first", Json());
}

bool Examples::wants(uint64_t first, uint64_t count) const {
  const auto next = std::ranges::lower_bound(chosen_, first);
  return next != chosen_.end() && *next < first + count;
}

void Examples::take(uint64_t first, std::span<const at::Tensor> fields, std::span<const at::Tensor> outputs) {
  const at::NoGradGuard no_grad;
  for (const uint64_t sample : chosen_) {
    const auto number = static_cast<int64_t>(sample - first);
    if (sample < first || number >= outputs[pairs_.front().prediction].size(0)) continue;
    Json list = Json::array();
    for (const OutputPair& pair : pairs_) {
      Json json = output_json(tensors_of(pair, outputs), number, fields, fields_);
      if (json.is_null()) continue;
      json.update({{"name", pair.name}, {"unit", outputs_[pair.prediction].unit}});
      list.push_back(std::move(json));
    }
    if (!list.empty()) taken_[sample] = std::move(list);
  }
}

Json Examples::taken() const {
  Json pairs = Json::array();
  for (const auto& [sample, outputs] : taken_) pairs.push_back({sample, outputs});
  return pairs;
}

void Examples::add_taken(const Json& taken) {
  for (const Json& pair : taken) taken_[pair.at(0).get<uint64_t>()] = pair.at(1);
}

void Examples::write(int64_t step, int64_t epoch) {
  if (taken_.empty()) return;
  Json samples = Json::array();
  for (auto& [sample, outputs] : taken_) samples.push_back({{"sample", sample}, {"outputs", std::move(outputs)}});
  taken_.clear();
  Json evaluation = {{"step", step}, {"epoch", epoch}, {"samples", std::move(samples)}};
  // A run that goes on from an earlier checkpoint makes its first evaluation again.
  if (!first_.is_object() || first_.value("step", step) >= step) first_ = evaluation;
  const Json json = {{"format", 1}, {"first", first_}, {"last", std::move(evaluation)}};
  write_file_atomically(file_, json_text(json) + "\n");
}

}  // namespace headroom
