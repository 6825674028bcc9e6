#include "train/stitch.hpp"

#include <ATen/DLConvertor.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>

#include "data/field_statistics.hpp"
#include "data/standardise.hpp"
#include "train/signals.hpp"
#include "train/tensor_file.hpp"

namespace headroom {

namespace {

constexpr uint64_t most_channels = 256;  // pictures are no lines

// The whole field of sample `i`, as float32: models may have rounded to it.
std::vector<float> field_values(const Field& field, const DLTensor& tensor, int64_t i) {
  const int64_t elements = field.elements();
  const auto* data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  std::vector<float> values(static_cast<size_t>(elements));
  const auto copy = [&](const auto* from) {
    for (int64_t e = 0; e < elements; ++e) values[static_cast<size_t>(e)] = static_cast<float>(from[i * elements + e]);
  };
  is_f64(field) ? copy(reinterpret_cast<const double*>(data)) : copy(reinterpret_cast<const float*>(data));
  return values;
}

// Of every element of a field's row, by its place: names and units of its channels.
std::vector<Channel> row_channels(const Field& field, const FieldRows& rows, const std::vector<Channel>& scales,
                                  const std::function<size_t(uint64_t)>& scale_of) {
  std::vector<Channel> channels(rows.width);
  // Where each row has statistics of its own, channels have no names.
  const bool named = rows.width == 1 || scale_of(0) != scale_of(rows.width - 1);
  for (uint64_t c = 0; c < rows.width; ++c) {
    if (named) channels[c] = scales[scale_of(c)];
    if (channels[c].name.empty()) channels[c].name = rows.width == 1 ? field.name : "channel " + std::to_string(c);
    if (channels[c].unit.empty()) channels[c].unit = field.unit;
  }
  return channels;
}

// How a model's standardised values of a field come from what was measured.
class MeasuredRows {
 public:
  MeasuredRows(const Field& field, const FieldRows& rows, const Normalizer& normalizer)
      : rows_(rows), scales_(measured_channels(field, normalizer.statistics(), field.channel_axis)) {
    if (field.channel_axis >= 0) {
      const auto axis = static_cast<size_t>(field.channel_axis);
      extent_ = static_cast<uint64_t>(field.shape[axis]);
      for (size_t inner = axis + 1; inner < field.shape.size(); ++inner)
        stride_ *= static_cast<uint64_t>(field.shape[inner]);
    }
    channels_ = row_channels(field, rows, scales_, [this](uint64_t element) { return scale_of(element); });
  }
  const std::vector<Channel>& channels() const { return channels_; }

  // `values`: of the rows that the target is.
  void measure(std::vector<double>& values) const {
    for (uint64_t i = 0; i < values.size(); ++i) {
      const Channel& scale = scales_[scale_of(rows_.first * rows_.width + i)];
      values[i] = values[i] * scale.std + scale.mean;
    }
  }

 private:
  size_t scale_of(uint64_t element) const { return static_cast<size_t>(element / stride_ % extent_); }

  FieldRows rows_;
  std::vector<Channel> scales_, channels_;
  uint64_t stride_ = 1, extent_ = 1;
};

// Row `sample` of an output. A copy: what follows a mask of bytes in the file is not aligned.
at::Tensor output_of(const TensorBytes& output, uint64_t sample) {
  const at::Tensor row = at::empty(at::IntArrayRef(output.shape).slice(1), at::toScalarType(output.dtype));
  std::memcpy(row.mutable_data_ptr(), output.data.data() + sample * row.nbytes(), row.nbytes());
  return row;
}

std::vector<double> doubles_of(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kDouble).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

// 1 for each element of `shape` that counts. From the first axis on, as a mask may lack trailing ones.
std::vector<double> valid_of(const TensorBytes* mask, uint64_t sample, at::IntArrayRef shape) {
  at::Tensor valid = mask != nullptr ? output_of(*mask, sample).ne(0) : at::ones({}, at::kBool);
  while (valid.dim() < static_cast<int64_t>(shape.size())) valid = valid.unsqueeze(-1);
  return doubles_of(valid.expand(shape));
}

// Lines on their way to the disk, some rows at once.
class LinesFile {
 public:
  LinesFile(const std::filesystem::path& path, uint64_t width)
      : file_(path, {"prediction", "hold_last", "recorded", "recording", "row"}), width_(width) {}

  void add(int64_t recording, int64_t row, const LineRow& values) {
    predicted_.insert(predicted_.end(), values.predicted.begin(), values.predicted.end());
    held_.insert(held_.end(), values.held.begin(), values.held.end());
    recorded_.insert(recorded_.end(), values.recorded.begin(), values.recorded.end());
    recordings_.push_back(recording);
    rows_.push_back(row);
    if (rows_.size() == at_once) flush();
  }
  void write() {
    flush();
    file_.write();
  }

 private:
  static constexpr size_t at_once = 1024;

  void flush() {
    if (rows_.empty()) return;
    const auto lines = [&](const std::vector<double>& values) {
      return at::tensor(values, at::kDouble).view({-1, static_cast<int64_t>(width_)});
    };
    file_.append({lines(predicted_), lines(held_), lines(recorded_), at::tensor(recordings_, at::kLong),
                  at::tensor(rows_, at::kLong)});
    for (auto* values : {&predicted_, &held_, &recorded_}) values->clear();
    recordings_.clear();
    rows_.clear();
  }

  RowsFile file_;
  uint64_t width_;
  std::vector<double> predicted_, held_, recorded_;
  std::vector<int64_t> recordings_, rows_;
};

// What one sample says of its rows, [rows, channels] each.
struct WindowValues {
  std::vector<double> predicted, recorded, valid;
};

// Holds the rows that a later window may still reach.
class Line {
 public:
  Line(uint64_t width, std::function<void(int64_t, const LineRow&)> give)
      : width_(width), give_(std::move(give)), last_(width, NAN) {}

  // Windows come in the order of their first rows; `length`: of the recording.
  void take(int64_t first, uint64_t length, const WindowValues& values) {
    const int64_t begin = std::max<int64_t>(first, 0);
    const auto rows = static_cast<int64_t>(values.predicted.size() / width_);
    const int64_t end = std::min(first + rows, static_cast<int64_t>(length));
    if (begin >= end) return;
    finish(begin);
    std::vector<double> held = last_;
    for (int64_t row = begin; row < end; ++row) {
      const auto at = static_cast<size_t>(row - first) * width_;
      if (static_cast<size_t>(row - open_begin_) == open_.size()) open_.push_back(opened(values, at));
      LineRow& line = open_[static_cast<size_t>(row - open_begin_)].line;
      ++open_[static_cast<size_t>(row - open_begin_)].windows;
      for (size_t c = 0; c < width_; ++c) {
        // Before anything was recorded, the first value itself.
        if (std::isnan(held[c])) held[c] = values.recorded[at + c];
        line.predicted[c] += values.predicted[at + c];
        line.held[c] += held[c];
        if (values.valid[at + c] != 0.0) line.valid[c] = 1;
      }
    }
  }

  // Gives the rows before `row`.
  void finish(int64_t row) {
    for (; !open_.empty() && open_begin_ < row; ++open_begin_, open_.pop_front()) {
      LineRow& line = open_.front().line;
      for (size_t c = 0; c < width_; ++c) {
        line.predicted[c] /= open_.front().windows;
        line.held[c] /= open_.front().windows;
        if (line.valid[c] != 0) last_[c] = line.recorded[c];
      }
      give_(open_begin_, line);
    }
    if (open_.empty()) open_begin_ = row;
  }

 private:
  struct Open {
    LineRow line;  // sums of the windows
    double windows = 0;
  };
  Open opened(const WindowValues& values, size_t at) const {
    const auto from = values.recorded.begin() + static_cast<std::ptrdiff_t>(at);
    return {{std::vector<double>(width_, 0.0),
             std::vector<double>(width_, 0.0),
             {from, from + static_cast<std::ptrdiff_t>(width_)},
             std::vector<uint8_t>(width_, 0)}};
  }

  uint64_t width_;
  std::function<void(int64_t, const LineRow&)> give_;
  std::vector<double> last_;  // recorded before what is open; NaN: nothing that counts
  std::deque<Open> open_;
  int64_t open_begin_ = 0;
};

}  // namespace

TargetRows::TargetRows(const std::vector<Field>& fields, const PredictInput& input) : fields_(fields) {
  for (size_t f = 0; f < fields.size() && input.samples() > 0; ++f) {
    if (!is_f32(fields[f]) && !is_f64(fields[f])) continue;
    const auto position = input.position(f, 0);
    if (!position) continue;
    const uint64_t width = static_cast<uint64_t>(fields[f].elements()) / position->rows.rows;
    places_known_ = true;
    if (width <= most_channels) candidates_.push_back({f, position->rows.rows, width});
  }
}

void TargetRows::compare(const Batch& batch, int64_t first, const at::Tensor& prediction, const at::Tensor& target) {
  if (!target.is_floating_point() || prediction.sizes() != target.sizes() || target.numel() == 0)
    return candidates_.clear();
  const at::Tensor values = target.to(at::kFloat).contiguous();
  const auto elements = static_cast<uint64_t>(values.numel() / values.size(0));
  for (int64_t i = 0; i < values.size(0); ++i) {
    const float* wanted = values.const_data_ptr<float>() + static_cast<uint64_t>(i) * elements;
    std::erase_if(candidates_, [&](Candidate& candidate) {
      const DLTensor& tensor = batch.fields[candidate.field];
      const uint64_t rows = elements / candidate.width;
      if (tensor.data == nullptr || elements % candidate.width != 0 || rows == 0 || rows > candidate.rows) return true;
      if (!candidate.firsts) {
        candidate.firsts.emplace();
        for (uint64_t row = 0; row + rows <= candidate.rows; ++row) candidate.firsts->push_back(row);
      }
      const std::vector<float> shown = field_values(fields_[candidate.field], tensor, first + i);
      std::erase_if(*candidate.firsts, [&](uint64_t row) {
        // Bytes, not numbers: a NaN is equal to itself.
        return std::memcmp(shown.data() + row * candidate.width, wanted, elements * sizeof(float)) != 0;
      });
      return candidate.firsts->empty();
    });
  }
}

std::optional<FieldRows> TargetRows::found() const {
  if (candidates_.empty() || !candidates_.front().firsts) return std::nullopt;
  // Several are left only where their values never differ.
  const Candidate& candidate = candidates_.front();
  return FieldRows{candidate.field, candidate.firsts->back(), candidate.width};
}

std::optional<PredictedLines> stitch(const Setup& setup, const PredictInput& input, const Normalizer& normalizer,
                                     const FieldRows& target, const StitchedOutputs& outputs,
                                     const PredictionOrigin& origin, const std::filesystem::path& file) {
  const Field& field = setup.data.source->fields()[target.field];
  const MeasuredRows measured(field, target, normalizer);
  const at::IntArrayRef shape = at::IntArrayRef(outputs.prediction->shape).slice(1);
  PredictedLines lines(origin, field.name, measured.channels());
  LinesFile on_disk(file, target.width);
  int64_t recording = -1, before = INT64_MIN;
  const auto give = [&](int64_t row, const LineRow& values) {
    on_disk.add(recording, row, values);
    lines.add(row, values);
  };
  std::optional<Line> line;
  std::optional<SamplePosition> last;
  for (uint64_t sample = 0; sample < input.samples(); ++sample) {
    if (stop_requested() != Exit::ok) return std::nullopt;
    const std::optional<SamplePosition> position = input.position(target.field, sample);
    if (!position) continue;
    if (!last || last->split != position->split || last->group != position->group) {
      if (line) line->finish(INT64_MAX);
      line.emplace(target.width, give);
      lines.begin(position->name);
      ++recording;
      before = INT64_MIN;
    }
    last = position;
    const int64_t first = position->rows.first + static_cast<int64_t>(target.first);
    if (first < before) {
      throw Error(Exit::plugin, setup.data.source->id(),
                  "it says that samples of '" + position->name + "' begin at row " + std::to_string(before) +
                      " and then at row " + std::to_string(first) + "; within a group rows do not fall");
    }
    before = first;
    WindowValues values{doubles_of(output_of(*outputs.prediction, sample)),
                        doubles_of(output_of(*outputs.target, sample)), valid_of(outputs.mask, sample, shape)};
    measured.measure(values.predicted);
    measured.measure(values.recorded);
    line->take(first, position->rows.length, values);
  }
  if (line) line->finish(INT64_MAX);
  on_disk.write();
  return lines;
}

}  // namespace headroom
