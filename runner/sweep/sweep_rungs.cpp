#include "sweep/sweep_rungs.hpp"

#include <cmath>
#include <limits>

namespace headroom {

namespace {

// All trials have one experiment.metric, so any of them that has a value knows its direction.
bool lower_wins(const std::vector<TrialEntry>& entries) {
  for (const TrialEntry& entry : entries) {
    if (entry.result.run.metric) return entry.result.run.lower_wins;
  }
  return true;
}

}  // namespace

bool SweepRungs::pause(TrialEntry& entry) const {
  const TrialRun& run = entry.result.run;
  if (!halving_.is_on() || entry.result.record.decided || run.folder.empty()) return false;
  std::vector<double>& metrics = entry.result.record.rung_metrics;
  const size_t before = metrics.size(), end = run.finished ? halving_.rung_epochs.size() : entry.rung + 1;
  // A finished trial has reached every rung, also where it stopped early.
  const int64_t epochs = run.finished ? std::numeric_limits<int64_t>::max() : run.epochs;
  while (metrics.size() < end && halving_.rung_epochs[metrics.size()] <= epochs)
    metrics.push_back(run.metric.value_or(NAN));
  // On the disk before anybody is promoted by it: a sweep that is resumed promotes the same trials.
  if (metrics.size() > before) entry.folder.write(entry.result.record);
  if (run.finished || metrics.size() <= entry.rung) return false;
  entry.state() = TrialState::paused;
  entry.restarts = 0;
  return true;
}

void SweepRungs::promote() {
  if (!halving_.is_on()) return;
  std::vector<Climb> climbs;
  size_t known = 0;
  for (TrialEntry& entry : entries_) {
    const bool is_out = is_end(entry.state()) && entry.state() != TrialState::finished;
    climbs.push_back({entry.result.record.rung_metrics, is_out});
    known += climbs.back().metrics.size() + (is_out ? 1 : 0);
  }
  // Promotions follow from metrics and ends alone.
  if (known == known_) return;
  known_ = known;
  const std::vector<size_t> rungs = promotions(climbs, halving_, lower_wins(entries_));
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].rung = rungs[i];
    if (entries_[i].state() == TrialState::paused && climbs[i].metrics.size() <= rungs[i])
      entries_[i].state() = TrialState::interrupted;
  }
}

void SweepRungs::drop() const {
  for (TrialEntry& entry : entries_) {
    if (entry.state() == TrialState::paused) entry.state() = TrialState::dropped;
  }
}

int64_t SweepRungs::until_epoch(const TrialEntry& entry) const {
  return entry.rung + 1 < halving_.rung_epochs.size() ? halving_.rung_epochs[entry.rung] : 0;
}

}  // namespace headroom
