#include "train/predict_recording.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "data/field_statistics.hpp"
#include "data/standardise.hpp"
#include "metrics/picture.hpp"
#include "record/png.hpp"
#include "record/progress.hpp"
#include "record/run_folder.hpp"
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

// Of every channel a name, a unit, and how the standardised value came from what was measured.
std::vector<Channel> channels_of(const Field& field, const Normalizer& normalizer) {
  std::vector<Channel> channels = measured_channels(field, normalizer.statistics(), /*axis=*/1);
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

constexpr uint64_t most_shown = 4;

// Where a field of that name is among `fields`; nullopt: nowhere.
std::optional<size_t> place_of(const std::vector<Field>& fields, const std::string& name) {
  const auto found = std::ranges::find(fields, name, &Field::name);
  if (found == fields.end()) return std::nullopt;
  return static_cast<size_t>(found - fields.begin());
}

// Of another field of pictures like the target's: what there was before the model.
std::optional<size_t> before_place(const std::vector<Field>& fields, size_t target) {
  const Field& wanted = fields[target];
  for (size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    const bool same_type = field.dtype.code == wanted.dtype.code && field.dtype.bits == wanted.dtype.bits;
    if (i == target || !same_type || field.shape.size() != 4 || (field.shape[1] != 1 && field.shape[1] != 3)) continue;
    // Where the recording lacks the target, there is no size to compare with.
    if (is_missing(wanted) || field.shape == wanted.shape) return i;
  }
  return std::nullopt;
}

// As in a file: [height, width, colours].
at::Tensor pixels_of_field(const at::Tensor& picture) {
  if (picture.scalar_type() == at::kByte) return picture.permute({1, 2, 0}).contiguous();
  return pixels_of(picture, {});
}

// Of 8-bit pictures, in dB.
double psnr(const at::Tensor& pixels, const at::Tensor& target) {
  const at::Tensor error = pixels.to(at::kDouble) - target.to(at::kDouble);
  return 10.0 * std::log10(255.0 * 255.0 / error.square().mean().item<double>());
}

// Takes answers in the order of their starts, and gives every step's picture as soon as no other answer can reach it.
class Frames {
 public:
  // `horizon`: pictures of one answer.
  Frames(const std::string& model, const std::vector<Field>& fields, size_t target, uint64_t horizon, uint64_t steps,
         const std::filesystem::path& folder)
      : model_(model), before_(before_place(fields, target)), folder_(folder), steps_(steps) {
    if (!is_missing(fields[target])) target_ = target;
    result.before = before_ ? fields[*before_].name : "";
    result.horizon = horizon;
    const uint64_t shown = std::min(steps, most_shown);
    for (uint64_t i = 0; i < shown; ++i) shown_.push_back((2 * i + 1) * steps / (2 * shown));
  }

  // `prediction`: [horizon, colours, height, width] from `start` on; `fields`: of that sample alone.
  void take(uint64_t start, const at::Tensor& prediction, const std::vector<at::Tensor>& fields) {
    const at::IntArrayRef sizes = prediction.sizes();
    const bool pictures = sizes.size() == 4 && sizes[0] == static_cast<int64_t>(result.horizon);
    if (!pictures || (target_ && sizes != fields[*target_][0].sizes())) {
      throw Error(Exit::plugin, model_,
                  "its prediction has the shape " + c10::str(sizes) + ", the target of it " +
                      (target_ ? c10::str(fields[*target_][0].sizes()) : c10::str(result.horizon) + " pictures"));
    }
    // Starts rise, so no later answer reaches the steps before this one.
    finish(start);
    // A recording that is shorter than an answer cuts it off.
    for (uint64_t ahead = 0; ahead < result.horizon && start + ahead < steps_; ++ahead) {
      Frame& frame = open_[start + ahead];
      const auto row = static_cast<int64_t>(ahead);
      const at::Tensor picture = prediction[row].to(at::kFloat);
      if (frame.answers++ > 0) {
        frame.sum.add_(picture);
        continue;
      }
      frame.sum = picture.clone();
      if (target_) frame.target = pixels_of_field(fields[*target_][0][row]);
      if (before_) frame.before = pixels_of_field(fields[*before_][0][row]);
    }
  }

  // Those before `step`, at the end all.
  void finish(uint64_t step) {
    while (!open_.empty() && open_.begin()->first < step) {
      write(open_.begin()->first, open_.begin()->second);
      open_.erase(open_.begin());
    }
  }

  PredictedPictures result;

 private:
  struct Frame {
    at::Tensor sum, target, before;
    int64_t answers = 0;
  };

  void write(uint64_t step, const Frame& frame) {
    const at::Tensor pixels = pixels_of(frame.sum / static_cast<double>(frame.answers), {});
    char name[32];
    std::snprintf(name, sizeof name, "%06llu.png", static_cast<unsigned long long>(step));
    write_file_atomically(folder_ / name,
                          png_bytes({pixels.const_data_ptr<uint8_t>(), static_cast<size_t>(pixels.numel())},
                                    static_cast<uint32_t>(pixels.size(1)), static_cast<uint32_t>(pixels.size(0)),
                                    static_cast<uint32_t>(pixels.size(2))));
    PictureStep& known = result.steps.emplace_back();
    if (target_) known.psnr_db = psnr(pixels, frame.target);
    if (target_ && before_) known.before_psnr_db = psnr(frame.before, frame.target);
    if (std::ranges::count(shown_, step) == 0) return;
    const auto shown = [](const at::Tensor& of) {
      const auto picture = of.defined() ? picture_of(of) : std::nullopt;
      return picture ? shown_picture(*picture, {0, 255}) : std::string();
    };
    result.shown.push_back({step, shown(frame.before), shown(pixels), shown(frame.target)});
  }

  std::string model_;
  std::optional<size_t> target_, before_;  // among the fields, where there are any
  std::filesystem::path folder_;
  uint64_t steps_;
  std::vector<uint64_t> shown_;
  std::map<uint64_t, Frame> open_;
};

}  // namespace

std::optional<PredictedRecording> predict_steps(const Setup& setup, PredictInput& input, const Normalizer& normalizer,
                                                const PredictionOrigin& origin) {
  const auto asked = ask_at_every_step(setup, input, origin.trained_steps);
  if (!asked) return std::nullopt;
  PredictedRecording result;
  result.origin = origin;
  result.horizon = asked->chunks.horizon;
  result.channels = channels_of(setup.data.source->fields()[target_field(setup)], normalizer);
  result.recorded = as_measured(asked->recorded, result.channels);
  result.open_loop = as_measured(open_loop(asked->chunks), result.channels);
  result.ensembled = as_measured(ensembled(asked->chunks, setup.model->predictor()->ensemble_decay), result.channels);
  result.held = held_position(result.recorded, result.horizon, result.channels.size());
  return result;
}

bool predicts_pictures(const Setup& setup) {
  const std::vector<Field>& fields = setup.data.source->fields();
  const auto target = place_of(fields, setup.model->predictor()->target_field);
  if (!target) return false;
  const std::vector<int64_t>& shape = fields[*target].shape;
  return shape.size() == 4 && (shape[1] == 1 || shape[1] == 3);
}

std::optional<PredictedPictures> predict_pictures(const Setup& setup, std::unique_ptr<Recording> recording,
                                                  const Normalizer& normalizer, const PredictionOrigin& origin,
                                                  const std::filesystem::path& folder) {
  const hr_predict& predictor = *setup.model->predictor();
  const uint64_t steps = recording->steps();
  const std::vector<Field> fields = recording->fields();
  const size_t target = *place_of(fields, predictor.target_field);
  const size_t output = prediction_output(*setup.model);
  // Of the source: the recording may lack the field and have no extents of it.
  const auto horizon = static_cast<uint64_t>(setup.data.source->fields()[target].shape[0]);
  Frames frames(setup.model->id(), fields, target, horizon, steps, folder);
  const std::vector<uint64_t> starts = question_starts(steps, horizon, predictor.overlap);
  const auto input = recorded_steps(setup, std::move(recording), normalizer, starts);
  Progress progress(terminal_of(2), /*log_every=*/1);
  progress.begin("predict", "clips", static_cast<int64_t>(starts.size()), 0);
  int64_t asked = 0;
  const bool done =
      run_pass(setup, *input,
               {.ask = asking_without(target, setup, origin.trained_steps),
                .take = [&](const Batch& batch, int64_t first, int64_t count, const Outputs& outputs) {
                  for (int64_t i = 0; i < count; ++i) {
                    const MicroBatchTensors sample(batch, first + i, 1, at::kCPU, at::kFloat);
                    frames.take(batch.index[static_cast<size_t>(first + i)], outputs[output][i], sample.fields);
                    progress.update(++asked, {});
                  }
                }});
  if (!done) return std::nullopt;
  frames.finish(steps);
  progress.end("");
  frames.result.origin = origin;
  return std::move(frames.result);
}

}  // namespace headroom
