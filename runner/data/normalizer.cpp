#include "data/normalizer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "data/slots.hpp"
#include "data/standardise.hpp"
#include "headroom/random.h"
#include "headroom/sdk/finite.hpp"

namespace headroom {

namespace {

// A fixed size: other blocks would round the merged sums differently, and statistics would depend on memory.
constexpr int64_t block_bytes = 8 << 20;

// Running mean and squared deviations of one channel: Welford within a block, Chan, Golub and LeVeque between blocks.
struct Moments {
  double count = 0, mean = 0, squares = 0;
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;

  void add(double value) {
    count += 1;
    const double away = value - mean;
    mean += away / count;
    squares += away * (value - mean);
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
  void merge(const Moments& other) {
    if (other.count == 0) return;
    const double total = count + other.count, away = other.mean - mean;
    squares += other.squares + away * away * count * other.count / total;
    mean += away * other.count / total;
    count = total;
    smallest = std::min(smallest, other.smallest);
    largest = std::max(largest, other.largest);
  }
  bool constant() const { return smallest == largest; }
  // Of the population (divided by the count), as numpy's std(). A constant channel would otherwise be divided by 0.
  double deviation() const { return constant() ? 1.0 : std::sqrt(squares / count); }
};

template <class T>
void accumulate(const T* at, const FieldView& view, std::vector<Moments>& channels) {
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t channel = 0; channel < view.channels; ++channel) {
      for (int64_t inner = 0; inner < view.inner; ++inner, ++at)
        channels[static_cast<size_t>(channel)].add(static_cast<double>(*at));
    }
  }
}

// Evenly spaced positions of a split of `length`: both ends, and each once.
std::vector<uint64_t> positions(uint64_t length, const std::string& mode, int64_t most) {
  const uint64_t count =
      mode == "exact" ? length : std::min<uint64_t>(length, static_cast<uint64_t>(std::max<int64_t>(most, 1)));
  std::vector<uint64_t> chosen(count);
  for (uint64_t i = 0; i < count; ++i) {
    chosen[i] = count < 2
                    ? 0
                    : static_cast<uint64_t>(std::llround(
                          static_cast<double>(i) * (static_cast<double>(length - 1) / static_cast<double>(count - 1))));
  }
  return chosen;
}

// Gathers the moments of every field that asks for it. Blocks of 8 MiB are read and merged in the order of the split,
// so the result does not depend on memory or threads.
class Measurement {
 public:
  Measurement(const Source& source, const Split& split)
      : source_(source), split_(split), moments_(source.fields().size()), samples_(source.fields().size()) {
    for (size_t i = 0; i < moments_.size(); ++i) {
      const Field& field = source.fields()[i];
      wanted_.push_back(field.normalize);
      if (!field.normalize) continue;
      if (!is_f32(field) && !is_f64(field)) {
        throw Error(Exit::plugin, source.id(),
                    "field '" + field.name + "' asks to be standardised and is " + dtype_name(field.dtype) +
                        "; only float32 and float64 can be");
      }
      moments_[i].resize(static_cast<size_t>(view_of(field, 1).channels));
      sample_bytes_ += field.bytes();
    }
  }

  bool empty() const { return sample_bytes_ == 0; }

  void read(std::span<const uint64_t> positions, bool skip_bad_samples) {
    // measure() has returned before where the split has no samples, so there is at least one position.
    const auto step = static_cast<size_t>(
        std::clamp<int64_t>(block_bytes / sample_bytes_, 1, static_cast<int64_t>(positions.size())));
    // Other fields get no memory, which tells the source that they are not wanted.
    Slot slot(source_.fields(), static_cast<int64_t>(step), wanted_);
    Reader reader = source_.reader();
    for (size_t done = 0; done < positions.size(); done += step) {
      std::vector<uint64_t> index;
      for (const uint64_t position : positions.subspan(done, std::min(step, positions.size() - done)))
        index.push_back(split_.source_index(position));
      try {
        add(reader, slot, index);
      } catch (const BadSample&) {
        if (!skip_bad_samples) throw;
        // The read failed before any value of the block was added, so none counts twice.
        add_one_by_one(reader, slot, index);
      }
    }
  }

  std::vector<FieldStatistics> statistics() const {
    std::vector<FieldStatistics> all;
    for (size_t i = 0; i < moments_.size(); ++i) {
      if (!wanted_[i]) continue;
      all.push_back({source_.fields()[i].name, {}, {}, samples_[i]});
      if (samples_[i] == 0) {
        throw Error(Exit::data, source_.id(),
                    "none of the samples measured of split '" + split_.name() + "' has finite values in field '" +
                        all.back().field + "'; correct the data, or set data.normalize = \"off\"");
      }
      for (const Moments& channel : moments_[i]) {
        all.back().mean.push_back(channel.mean);
        all.back().std.push_back(channel.deviation());
      }
    }
    return all;
  }

  MeasurementNotes notes() const {
    MeasurementNotes notes;
    if (!left_out_.empty()) {
      notes.push_back(std::to_string(left_out_.size()) + (left_out_.size() == 1 ? " sample was" : " samples were") +
                      " left out of the statistics; the first: " + first_left_out_);
    }
    for (size_t i = 0; i < moments_.size(); ++i) {
      const auto constant = std::ranges::count_if(moments_[i], &Moments::constant);
      if (constant == 0) continue;
      notes.push_back("field '" + source_.fields()[i].name + "' is constant in " + std::to_string(constant) + " of " +
                      std::to_string(moments_[i].size()) + " channels, which are centred and not scaled");
    }
    return notes;
  }

 private:
  void add(Reader& reader, Slot& slot, std::span<const uint64_t> index) {
    std::vector<uint64_t> key;
    // A fixed seed and epoch: the statistics depend on the data alone, not on the run's seed.
    for (const uint64_t sample : index) key.push_back(hr_sample_key(0, split_.source_split(), 0, sample));
    const auto tensors = slot.tensors(0, static_cast<int64_t>(index.size()));
    reader.read(split_.source_split(), index, key, false, tensors);
    for (size_t i = 0; i < moments_.size(); ++i) {
      if (!wanted_[i]) continue;
      if (is_f32(source_.fields()[i])) add_field(i, static_cast<const float*>(tensors[i].data), index);
      if (is_f64(source_.fields()[i])) add_field(i, static_cast<const double*>(tensors[i].data), index);
    }
  }

  void add_one_by_one(Reader& reader, Slot& slot, std::span<const uint64_t> index) {
    for (const uint64_t& sample : index) {
      try {
        add(reader, slot, {&sample, 1});
      } catch (const BadSample& problem) {
        leave_out(sample, problem.what());
      }
    }
  }

  template <class T>
  void add_field(size_t i, const T* values, std::span<const uint64_t> index) {
    const Field& field = source_.fields()[i];
    const FieldView view = view_of(field, 1);
    // Of this block alone; merged below (Chan, Golub and LeVeque).
    std::vector<Moments> block(moments_[i].size());
    for (const uint64_t sample : index) {
      const auto bad = sdk::first_not_finite(std::span(values, static_cast<size_t>(field.elements())));
      if (!bad) {
        accumulate(values, view, block);
        ++samples_[i];
      } else {
        leave_out(sample, "field '" + field.name + "' of sample " + std::to_string(sample) + " of split '" +
                              split_.name() + "' holds " + (std::isnan(values[*bad]) ? "NaN" : "an infinite value") +
                              " in channel " + std::to_string(static_cast<int64_t>(*bad) / view.inner % view.channels));
      }
      values += field.elements();
    }
    for (size_t channel = 0; channel < block.size(); ++channel) moments_[i][channel].merge(block[channel]);
  }

  void leave_out(uint64_t sample, const std::string& why) {
    if (left_out_.empty()) first_left_out_ = why;
    left_out_.insert(sample);
  }

  const Source& source_;
  const Split& split_;
  std::vector<bool> wanted_;
  std::vector<std::vector<Moments>> moments_;  // [field][channel]
  std::vector<uint64_t> samples_;              // [field]
  int64_t sample_bytes_ = 0;
  // A set: a sample with bad values in two fields counts once.
  std::set<uint64_t> left_out_;
  std::string first_left_out_;
};

struct Measured {
  std::vector<FieldStatistics> statistics;  // of each field flagged NORMALIZE
  MeasurementNotes notes;
};

// For mode "sampled" or "exact".
Measured measure_fields(const Source& source, const Split& split, const std::string& mode, int64_t max_samples,
                        bool skip_bad_samples) {
  Measurement measurement(source, split);
  if (measurement.empty()) return {};
  measurement.read(positions(split.length(), mode, max_samples), skip_bad_samples);
  return {measurement.statistics(), measurement.notes()};
}

}  // namespace

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
    // The statistics may come from a checkpoint, and the fields from another source.
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

nlohmann::json Normalizer::to_json() const { return statistics_to_json(statistics_); }

Normalizer Normalizer::from_json(const nlohmann::json& json) {
  Normalizer normalizer;
  normalizer.statistics_ = statistics_from_json(json);
  return normalizer;
}

}  // namespace headroom
