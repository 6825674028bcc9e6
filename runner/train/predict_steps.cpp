#include "train/predict_steps.hpp"

#include <algorithm>

#include "data/standardise.hpp"
#include "train/chunks.hpp"
#include "train/predict_pass.hpp"

namespace headroom {

namespace {

// The field a model's predictions are of, [steps, channels].
size_t target_field(const Setup& setup) {
  const std::string name = setup.model->predictor()->target_field;
  const std::vector<Field>& fields = setup.data.source->fields();
  const auto found = std::ranges::find(fields, name, &Field::name);
  if (found == fields.end() || found->shape.size() != 2 || !(is_f32(*found) || is_f64(*found))) {
    throw Error(Exit::plugin, setup.model->id(),
                "it predicts the field '" + name + "', which the datasource '" + setup.data.source->id() +
                    "' does not give as floating-point numbers [steps, channels]");
  }
  return static_cast<size_t>(found - fields.begin());
}

// Of every channel its name, its unit, and how the standardised value came from what was measured: by the source, and
// by the host after it.
std::vector<Channel> channels_of(const Field& field, const Normalizer& normalizer) {
  std::vector<Channel> channels = field.channels;
  channels.resize(static_cast<size_t>(field.shape[1]));
  for (const FieldStatistics& statistics : normalizer.statistics()) {
    if (statistics.field != field.name) continue;
    for (size_t c = 0; c < channels.size(); ++c) {
      const size_t kept = field.channel_axis == 1 ? c : 0;
      channels[c].mean += statistics.mean.at(kept) * channels[c].std;
      channels[c].std *= statistics.std.at(kept);
    }
  }
  for (size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].name.empty()) channels[c].name = "channel " + std::to_string(c);
    if (channels[c].unit.empty()) channels[c].unit = field.unit;
  }
  return channels;
}

std::vector<double> as_measured(std::vector<double> values, const std::vector<Channel>& channels) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Channel& channel = channels[i % channels.size()];
    values[i] = values[i] * channel.std + channel.mean;
  }
  return values;
}

// The first row of the field, of samples [first, first + count).
void append_first_rows(const Field& field, const DLTensor& tensor, int64_t first, int64_t count,
                       std::vector<double>& rows) {
  const int64_t elements = field.elements(), channels = field.shape[1];
  const auto append = [&](const auto* values) {
    for (int64_t i = first; i < first + count; ++i)
      rows.insert(rows.end(), values + i * elements, values + i * elements + channels);
  };
  is_f64(field) ? append(static_cast<const double*>(tensor.data)) : append(static_cast<const float*>(tensor.data));
}

struct Asked {
  Chunks chunks;
  std::vector<double> recorded;  // [steps, channels], standardised
};

// nullopt: stopped by a signal.
std::optional<Asked> ask_at_every_step(const Setup& setup, PredictInput& input, int64_t trained_steps) {
  const size_t target = target_field(setup);
  const Field& field = setup.data.source->fields()[target];
  const size_t output = prediction_output(*setup.model);
  Asked asked;
  const bool done =
      run_pass(setup, input,
               {.ask = asking_without(target, setup, trained_steps),
                .take = [&](const Batch& batch, int64_t first, int64_t count, const Outputs& outputs) {
                  const at::Tensor prediction = outputs[output].to(at::kDouble);
                  if (prediction.size(2) != field.shape[1]) {
                    throw Error(Exit::plugin, setup.model->id(),
                                "its prediction has " + std::to_string(prediction.size(2)) + " channels, the field '" +
                                    field.name + "' has " + std::to_string(field.shape[1]));
                  }
                  Chunks& chunks = asked.chunks;
                  chunks.horizon = static_cast<uint64_t>(prediction.size(1));
                  chunks.channels = static_cast<uint64_t>(prediction.size(2));
                  const double* values = prediction.const_data_ptr<double>();
                  chunks.values.insert(chunks.values.end(), values, values + prediction.numel());
                  append_first_rows(field, batch.fields[target], first, count, asked.recorded);
                }});
  return done ? std::optional(std::move(asked)) : std::nullopt;
}

}  // namespace

std::optional<PredictedRecording> predict_steps(const Setup& setup, PredictInput& input, const Normalizer& normalizer,
                                                const PredictionOrigin& origin) {
  const auto asked = ask_at_every_step(setup, input, origin.trained_steps);
  if (!asked) return std::nullopt;
  PredictedRecording told;
  told.origin = origin;
  told.horizon = asked->chunks.horizon;
  told.channels = channels_of(setup.data.source->fields()[target_field(setup)], normalizer);
  told.recorded = as_measured(asked->recorded, told.channels);
  told.open_loop = as_measured(open_loop(asked->chunks), told.channels);
  told.ensembled = as_measured(ensembled(asked->chunks, setup.model->predictor()->ensemble_decay), told.channels);
  told.held = held_position(told.recorded, told.horizon, told.channels.size());
  return told;
}

}  // namespace headroom
