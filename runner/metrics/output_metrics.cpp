#include <algorithm>
#include <cmath>
#include <limits>

#include "error.hpp"
#include "headroom/random.h"
#include "metrics/metrics.hpp"

namespace headroom {

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

using HostValues = std::array<double, host_metric_count>;  // mse, mae, rmse, r2

HostValues values_of(double count, double squared_error, double absolute_error, double r2) {
  // Nothing was valid: there is no mean.
  if (count <= 0) return {none, none, none, none};
  const double mse = squared_error / count;
  return {mse, absolute_error / count, std::sqrt(mse), r2};
}

// The values of every channel, and of all together.
struct Reading {
  explicit Reading(const at::Tensor& moments) {
    const auto rows = moments.accessor<double, 2>();
    double squared = 0.0, absolute = 0.0, r2 = 0.0, with_r2 = 0.0;
    for (int64_t c = 0; c < rows.size(1); ++c) {
      const double n = rows[Moment::count][c], variation = rows[Moment::variation][c];
      // R2 is 1 - squared error / variation: a target that never changes has none.
      const bool has_r2 = variation != 0.0;
      channels.push_back(values_of(n, rows[Moment::squared_error][c], rows[Moment::absolute_error][c],
                                   has_r2 ? 1.0 - rows[Moment::squared_error][c] / variation : none));
      count += n;
      squared += rows[Moment::squared_error][c];
      absolute += rows[Moment::absolute_error][c];
      if (has_r2) r2 += channels.back().back(), ++with_r2;
    }
    // NaN where no channel has an R2; `counted` then leaves it out.
    pooled = values_of(count, squared, absolute, r2 / with_r2);
    counted = {count > 0, count > 0, count > 0, with_r2 > 0};
  }

  std::vector<HostValues> channels;
  HostValues pooled{};
  std::array<bool, host_metric_count> counted{};
  double count = 0.0;
};

nlohmann::json column(const std::vector<HostValues>& channels, size_t metric) {
  nlohmann::json values = nlohmann::json::array();
  for (const HostValues& channel : channels) {
    // JSON has no number for what is not finite.
    values.push_back(std::isfinite(channel[metric]) ? nlohmann::json(channel[metric]) : nlohmann::json());
  }
  return values;
}

// For so many more, doubling as push_back() would.
void make_room(std::vector<PairTensors>& kept, size_t more) {
  if (kept.size() + more > kept.capacity()) kept.reserve(std::max(kept.size() + more, 2 * kept.capacity()));
}

void require_channels(const OutputPair& pair, int64_t now, int64_t before) {
  if (now == before) return;
  throw Error(Exit::plugin, pair.model,
              "the last axis of the output '" + pair.name + "' was " + std::to_string(before) + ", is " +
                  std::to_string(now) + ": it holds the channels and must not change");
}

void require_stored(bool suits, const OutputPair& pair, const std::string& form) {
  if (suits) return;
  throw Error(Exit::bad_input, "checkpoint",
              "what it holds of the output '" + pair.name + "' is not " + form +
                  ": use the checkpoint with the experiment that wrote it");
}

constexpr uint64_t metrics_site = 0x6D657472696373;  // "metrics": apart from the order of the epoch's samples

}  // namespace

void Measured::append(const Measured& more) {
  values.insert(values.end(), more.values.begin(), more.values.end());
  channels.update(more.channels);
  classes.update(more.classes);
}

OutputMetrics::OutputMetrics(std::vector<OutputPair> pairs, Keep keep, at::Device device) : keep_(keep) {
  for (OutputPair& pair : pairs) {
    parts_.push_back({std::move(pair), {}, {}, {}});
    Part& part = parts_.back();
    if (part.pair.classes) part.confusion.make_room(part.pair.classes->count, device);
  }
}

void OutputMetrics::zero() {
  for (Part& part : parts_) {
    part.sums.zero();
    part.confusion.zero();
    part.kept.clear();
  }
}

void OutputMetrics::add(std::span<const at::Tensor> outputs) {
  if (outputs.empty()) return;
  // Whatever may throw comes in the first loop, which adds nothing; the second only adds.
  std::vector<at::Tensor> moments(parts_.size());
  std::vector<PairTensors> copies(parts_.size());
  std::vector<ConfusionCells> cells(parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    const PairTensors tensors = tensors_of(part.pair, outputs);
    if (part.pair.classes) {
      cells[i] = cells_of(tensors, part.pair.classes->count);
    } else if (keep_ == Keep::outputs) {
      if (!part.kept.empty()) require_channels(part.pair, tensors.channels(), part.kept.front().channels());
      // The outputs may share the memory of a batch, which the loader uses again.
      copies[i] = keep(tensors);
      make_room(part.kept, 1);
    } else {
      part.sums.make_room(tensors.channels(), tensors.prediction.device());
      require_channels(part.pair, tensors.channels(), part.sums.tensor().size(1));
      moments[i] = moments_of(tensors);
    }
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].pair.classes) {
      parts_[i].confusion.add(cells[i]);
    } else if (keep_ == Keep::outputs) {
      parts_[i].kept.push_back(std::move(copies[i]));
    } else {
      parts_[i].sums.add(moments[i]);
    }
  }
}

void OutputMetrics::add(const OutputMetrics& other) {
  const size_t count = std::min(parts_.size(), other.parts_.size());
  for (size_t i = 0; i < count; ++i) {
    make_room(parts_[i].kept, other.parts_[i].kept.size());
    const at::Tensor& moments = other.parts_[i].sums.tensor();
    if (moments.defined()) parts_[i].sums.make_room(moments.size(1), moments.device());
  }
  for (size_t i = 0; i < count; ++i) {
    // There is room: from here on nothing is allocated.
    const Part& more = other.parts_[i];
    parts_[i].kept.insert(parts_[i].kept.end(), more.kept.begin(), more.kept.end());
    if (more.sums.tensor().defined()) parts_[i].sums.add(more.sums.tensor());
    if (parts_[i].pair.classes) parts_[i].confusion.add(more.confusion.tensor());
  }
}

at::Tensor OutputMetrics::Part::moments() const {
  if (!kept.empty()) return moments_of(kept);
  return sums.tensor().defined() ? sums.tensor().cpu() : at::Tensor();
}

void OutputMetrics::add_values(const Part& part, const std::string& prefix, Measured& measured) {
  const at::Tensor moments = part.moments();
  if (!moments.defined()) return;
  const Reading reading(moments);
  const bool lists_channels = moments.size(1) > 1 && moments.size(1) <= most_channels_listed;
  for (size_t i = 0; i < host_metric_count; ++i) {
    const std::string& name = part.pair.metrics[i].name;
    if (name.empty() || !reading.counted[i]) continue;
    measured.values.emplace_back(prefix + "/" + name, reading.pooled[i]);
    if (lists_channels) measured.channels[prefix + "/" + name] = column(reading.channels, i);
  }
}

void OutputMetrics::add_classes(const Part& part, const std::string& prefix, Measured& measured) {
  const at::Tensor matrix = part.confusion.tensor().cpu();
  const std::span<const int64_t> counts(matrix.const_data_ptr<int64_t>(), static_cast<size_t>(matrix.numel()));
  const ClassMetrics metrics = class_metrics(counts, matrix.size(0));
  if (metrics.count == 0) return;
  const std::array values{metrics.accuracy, metrics.macro_f1};  // in the order of all_metrics_for()
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& name = part.pair.metrics[i].name;
    if (!name.empty()) measured.values.emplace_back(prefix + "/" + name, values[i]);
  }
  measured.classes[prefix + "/" + part.pair.name] =
      class_metrics_json(counts, matrix.size(0), part.pair.classes->names);
}

Measured OutputMetrics::measured(const std::string& prefix) const {
  Measured measured;
  for (const Part& part : parts_) {
    part.pair.classes ? add_classes(part, prefix, measured) : add_values(part, prefix, measured);
  }
  return measured;
}

std::vector<std::pair<std::string, at::Tensor>> OutputMetrics::state() const {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (const Part& part : parts_) {
    if (part.stored().defined()) state.emplace_back(part.pair.name, part.stored());
  }
  return state;
}

void OutputMetrics::restore(const std::function<at::Tensor(const std::string& name)>& stored) {
  for (Part& part : parts_) {
    part.sums.zero();
    part.confusion.zero();
    const at::Tensor before = stored(part.pair.name);
    // Outputs that are kept are in no checkpoint: the epoch goes on without those before it.
    if (part.keeps(keep_) || !before.defined()) continue;
    if (part.pair.classes) {
      const int64_t classes = part.pair.classes->count;
      require_stored(before.sizes() == at::IntArrayRef({classes, classes}) && before.scalar_type() == at::kLong,
                     part.pair, "int64 of shape [" + std::to_string(classes) + ", " + std::to_string(classes) + "]");
      part.confusion.add(before);
    } else {
      require_stored(before.dim() == 2 && before.size(0) == Moment::rows && before.scalar_type() == at::kDouble,
                     part.pair, "float64 of shape [" + std::to_string(Moment::rows) + ", channels]");
      part.sums.make_room(before.size(1), before.device());
      part.sums.tensor().copy_(before);
    }
  }
}

MetricSample::MetricSample(uint64_t batches, uint64_t wanted, uint64_t seed, uint64_t epoch)
    : wanted_(wanted), order_(Shuffle::global, batches, hr_philox64(seed, metrics_site, 0), epoch) {}

// The batches whose place in a random order is among the first: a permutation has just as many of them.
bool MetricSample::contains(uint64_t batch) const { return batch < order_.length() && order_.at(batch) < wanted_; }

}  // namespace headroom
