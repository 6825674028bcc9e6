#include "plan/fit.hpp"

#include <algorithm>
#include <cmath>

#include "data/slots.hpp"

namespace headroom {

namespace {

// A run's own furniture that a probe has not: logs, the black box, the monitor's thread, what normalising left.
constexpr int64_t furniture_bytes = 5 << 20;
// Of what grows with the micro-batch: how much an allocator's free lists may add over many windows.
constexpr double creep = 0.03;

struct Line {
  double slope = 0.0, intercept = 0.0;
  double at(double x) const { return intercept + slope * x; }
};

Line through(double x0, double y0, double x1, double y1) {
  // Never falling: more samples take no less, so a fall is noise of the measurement.
  const double slope = std::max(0.0, (y1 - y0) / (x1 - x0));
  return {slope, y1 - slope * x1};
}

}  // namespace

Fit::Fit(Probe probe, const RunLoaders& loaders, bool full)
    : probe_(std::move(probe)), loaders_(loaders), full_(full) {}

int64_t Fit::slots_at(int64_t batch_size) const {
  const auto batches = [](int64_t samples, int64_t size) { return (samples + size - 1) / size; };
  const auto bytes_of = [&](const LoaderOptions& options, int64_t size, int64_t most_batches) {
    const int64_t batch_bytes = slot_bytes(probe_.field_bytes, size);
    return static_cast<int64_t>(slot_count(options, batch_bytes, most_batches)) * batch_bytes;
  };
  const LoaderOptions& training = loaders_.training;
  const int64_t bytes =
      bytes_of(training, batch_size, batches_in_all(training, batches(probe_.train_samples, batch_size)));
  if (probe_.val_samples == 0) return bytes;
  // An evaluation reads nothing ahead of its own last batch.
  const LoaderOptions evaluation = evaluation_at(batch_size);
  return bytes + bytes_of(evaluation, evaluation.batch_size, batches(probe_.val_samples, evaluation.batch_size));
}

// As one process of a run has them.
LoaderOptions Fit::evaluation_at(int64_t batch_size) const {
  LoaderOptions options = loaders_.evaluation;
  options.batch_size = batch_size;
  options.share = {};
  return loaders_.larger_evaluation_batches ? in_larger_batches(options, probe_.field_bytes) : options;
}

// Forward alone keeps little. Doubled while it takes half of what training's micro-batch was measured to take at most,
// so that evaluations never decide a run's peak.
int64_t Fit::evaluation_micro_batch(const Setting& setting) const {
  double smaller = HUGE_VAL;  // than training's: an evaluation of as many samples
  for (const ProbePoint& point : probe_.points) {
    if (point.evaluation_activation_bytes <= 0) return setting.micro_batch;
    smaller = std::min(smaller, static_cast<double>(point.training_activation_bytes) /
                                    static_cast<double>(point.evaluation_activation_bytes));
  }
  const double most = std::min(static_cast<double>(evaluation_at(setting.batch_size).batch_size),
                               static_cast<double>(setting.micro_batch) * smaller / 2);
  int64_t size = setting.micro_batch;
  while (static_cast<double>(2 * size) <= most) size *= 2;
  return size;
}

// Through the last points before and after the size that is wanted; `y` tells what the i-th of them measured.
double Fit::figure_at(int64_t micro_batch, const std::function<double(size_t)>& y) const {
  const auto& points = probe_.points;
  const auto x = [&](size_t i) { return static_cast<double>(points[i].micro_batch); };
  const auto wanted = static_cast<double>(micro_batch);
  if (points.size() == 1) {
    const Line line = through(0.0, static_cast<double>(probe_.base_bytes), x(0), y(0));
    return std::max(y(0), line.at(wanted));
  }
  size_t right = 1;
  while (right + 1 < points.size() && x(right) < wanted) ++right;
  const Line line = through(x(right - 1), y(right - 1), x(right), y(right));
  // Never below the least that was measured: the line is not continued downwards.
  double figure = std::max(line.at(wanted), std::min(y(0), y(right)));
  // Beyond the points the residual of the first one tells how straight the line is.
  if (wanted > x(right) && points.size() > 2) figure += std::max(0.0, y(0) - line.at(x(0))) / 2;
  return figure;
}

int64_t Fit::held_at(size_t phase, int64_t micro_batch) const {
  const double base = static_cast<double>(probe_.base_bytes);
  const double held =
      figure_at(micro_batch, [&](size_t i) { return static_cast<double>(probe_.points[i].held_bytes[phase]); });
  return std::llround(held + creep * std::max(0.0, held - base));
}

int64_t Fit::least_at(int64_t micro_batch) const {
  return std::llround(
      figure_at(micro_batch, [&](size_t i) { return static_cast<double>(probe_.points[i].least_bytes); }));
}

Prediction Fit::predict(const Setting& setting) const {
  Prediction prediction;
  prediction.slots_bytes = slots_at(setting.batch_size);
  prediction.batch_bytes = slot_bytes(probe_.field_bytes, setting.batch_size);
  prediction.evaluation_micro_batch = evaluation_micro_batch(setting);
  // Without workers the thread that trains decodes.
  const int64_t readers = std::max(1, loaders_.training.num_workers);
  const int64_t decoded_bytes = readers * probe_.largest_chunk_bytes;
  // While an evaluation's readers work, training's wait and keep what they decode in.
  const bool both_read = probe_.val_samples > 0 && loaders_.training.persistent_workers;
  const int64_t all_readers = readers + (both_read ? loaders_.evaluation.num_workers : 0);
  prediction.readers_bytes = all_readers * probe_.reader_bytes;
  prediction.workers_bytes = (probe_.shares_workers ? readers : all_readers) * probe_.worker_bytes;
  prediction.chunk_bytes = std::max(probe_.chunk_bytes, decoded_bytes);
  prediction.kept_bytes = full_ ? probe_.kept_bytes * (probe_.train_samples + probe_.val_samples) : 0;
  int64_t level = 0;
  for (size_t phase = 0; phase < probe_phases.size(); ++phase) {
    level = std::max(level, held_at(phase, setting.micro_batch));
    // Outputs are kept from the epoch's first window to its end.
    const int64_t kept = probe_.kept_bytes * (probe_.train_samples + (phase >= 2 ? probe_.val_samples : 0));
    prediction.phase_bytes[phase] = furniture_bytes + level + prediction.slots_bytes + prediction.chunk_bytes +
                                    prediction.readers_bytes + prediction.workers_bytes + (full_ ? kept : 0);
  }
  prediction.peak_bytes = prediction.phase_bytes.back();
  const int64_t of_evaluation = slot_bytes(probe_.field_bytes, evaluation_at(setting.batch_size).batch_size);
  const int64_t reading =
      (probe_.val_samples > 0 ? std::max(prediction.batch_bytes, of_evaluation) : prediction.batch_bytes) +
      decoded_bytes;
  // Processes stay when less is read ahead.
  prediction.reading_bytes = reading + probe_.reader_bytes + prediction.workers_bytes;
  prediction.work_bytes = prediction.peak_bytes - prediction.slots_bytes - prediction.chunk_bytes + reading;
  // Both come of measurements, whose noise may put the least above the other.
  prediction.least_bytes = std::min(prediction.work_bytes, furniture_bytes + least_at(setting.micro_batch) +
                                                               prediction.reading_bytes + prediction.kept_bytes);
  while (prediction.phase_bytes[prediction.largest_phase] < prediction.peak_bytes - prediction.peak_bytes / 100)
    ++prediction.largest_phase;
  return prediction;
}

}  // namespace headroom
