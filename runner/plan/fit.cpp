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
  const double slope = std::max(0.0, (y1 - y0) / (x1 - x0));
  return {slope, y1 - slope * x1};
}

}  // namespace

Fit::Fit(Probe probe, const LoaderOptions& loader, bool full)
    : probe_(std::move(probe)), loader_(loader), full_(full) {}

int64_t Fit::slots_at(int64_t batch_size) const {
  const int64_t batch_bytes = slot_bytes(probe_.field_bytes, batch_size);
  const int64_t loaders = probe_.val_samples > 0 ? 2 : 1;
  return loaders * static_cast<int64_t>(slot_count(loader_, batch_bytes)) * batch_bytes;
}

int64_t Fit::held_at(size_t phase, int64_t micro_batch) const {
  const auto& points = probe_.points;
  const auto x = [&](size_t i) { return static_cast<double>(points[i].micro_batch); };
  const auto y = [&](size_t i) { return static_cast<double>(points[i].held_bytes[phase]); };
  const auto wanted = static_cast<double>(micro_batch);
  const double base = static_cast<double>(probe_.base_bytes);
  if (points.size() == 1) {
    const Line line = through(0.0, base, x(0), y(0));
    return std::llround(std::max(y(0), line.at(wanted)));
  }
  size_t right = 1;
  while (right + 1 < points.size() && x(right) < wanted) ++right;
  const Line line = through(x(right - 1), y(right - 1), x(right), y(right));
  double held = std::max(line.at(wanted), std::min(y(0), y(right)));
  // Beyond the points the residual of the first one tells how straight the line is.
  if (wanted > x(right) && points.size() > 2) held += std::max(0.0, y(0) - line.at(x(0))) / 2;
  return std::llround(held + creep * (held - base));
}

Prediction Fit::predict(const Setting& setting) const {
  Prediction prediction;
  prediction.slots_bytes = slots_at(setting.batch_size);
  prediction.kept_bytes = full_ ? probe_.kept_bytes * (probe_.train_samples + probe_.val_samples) : 0;
  int64_t level = 0;
  for (size_t phase = 0; phase < probe_phases.size(); ++phase) {
    level = std::max(level, held_at(phase, setting.micro_batch));
    // Outputs are kept from the epoch's first window to its end.
    const int64_t kept = probe_.kept_bytes * (probe_.train_samples + (phase >= 2 ? probe_.val_samples : 0));
    prediction.phase_bytes[phase] = furniture_bytes + level + prediction.slots_bytes + (full_ ? kept : 0);
  }
  prediction.peak_bytes = prediction.phase_bytes.back();
  const int64_t one_batch = slot_bytes(probe_.field_bytes, setting.batch_size);
  prediction.least_bytes = prediction.peak_bytes - prediction.slots_bytes + one_batch;
  while (prediction.phase_bytes[prediction.largest_phase] < prediction.peak_bytes - prediction.peak_bytes / 100)
    ++prediction.largest_phase;
  return prediction;
}

}  // namespace headroom
