#include "train/retry.hpp"

#include <algorithm>
#include <limits>

#include "memory/budget.hpp"

namespace headroom {

namespace {

constexpr int64_t longest_patience = 4096;
constexpr int last_rung_of_speed = 300;  // memory/relief.hpp: caches, batches read ahead, free memory

}  // namespace

bool MicroBatch::halve() {
  if (!adapts_ || size_ == 1) return false;
  size_ = (size_ + 1) / 2;
  good_windows_ = 0;
  patience_ = std::min(2 * patience_, most_patience);
  return true;
}

bool MicroBatch::succeeded(int64_t peak_bytes, int64_t growing_bytes, int64_t limit_bytes) {
  if (!adapts_ || held_back_ || size_ == most_ || ++good_windows_ < patience_) return false;
  const bool fits = limit_bytes <= 0 || peak_bytes + growing_bytes <= limit_bytes - limit_bytes / 10;
  if (!fits) return false;
  size_ = std::min(2 * size_, most_);
  good_windows_ = 0;
  return true;
}

void MicroBatch::shrink_and_hold() {
  halve();
  held_back_ = true;
}

void MicroBatch::restore(int64_t size) {
  if (adapts_) size_ = std::clamp<int64_t>(size, 1, most_);
}

void MicroBatch::begin_at(int64_t size) {
  most_ = adapts_ ? std::max(most_, size) : most_;
  restore(size);
}

// Tightens every rung of the pressure ladder that costs speed alone. true: that gave memory back. Rungs that are tight
// already do not count: what has been cached again since then is no new gain.
bool Retry::trade_speed_for_memory() {
  const auto read_ahead_and_cached = [] {
    const LedgerReading ledger = read_ledger();
    return ledger.live(Owner::batches) + ledger.live(Owner::cache);
  };
  const int64_t before = read_ahead_and_cached();
  const size_t slower = slower_.size();
  for (const auto& rung : rungs()) {
    if (rung->order >= last_rung_of_speed || !rung->tighten || !rung->relax) continue;
    if (std::ranges::find(slower_, rung) != slower_.end()) continue;
    rung->tighten();
    slower_.push_back(rung);
  }
  good_windows_ = 0;
  give_back_memory(std::numeric_limits<int64_t>::max());
  return slower_.size() > slower && read_ahead_and_cached() < before;
}

void Retry::restore_speed_when_due() {
  if (slower_.empty() || ++good_windows_ < patience_) return;
  patience_ = std::min(2 * patience_, longest_patience);
  restore_speed();
}

void Retry::restore_speed() {
  const auto on_the_ladder = rungs();
  for (const auto& rung : slower_) {
    if (std::ranges::find(on_the_ladder, rung) != on_the_ladder.end()) rung->relax();
  }
  slower_.clear();
}

// From what costs nothing to what costs most: free memory is given back and the attempt repeated; then speed goes
// (batches read ahead, caches), then the micro-batch, then what forward keeps for backward. Where nothing is left, the
// run ends.
void Retry::after(const Shortage& shortage) {
  const std::string freed = std::to_string(purge_tensor_memory(device_) >> 20) + " MB of free memory given back, ";
  take_recent_peak(Owner::activations);
  if (++in_a_row_ == 1) {
    ++counts_.repeated;
    report_(shortage, freed + "repeated as it was");
    return;
  }
  // Reading ahead less frees memory of the host; it does nothing for a GPU that is full.
  const bool of_the_host = device_.is_cpu() || shortage.requested_bytes > 0;
  if (of_the_host && trade_speed_for_memory()) {
    ++counts_.repeated;
    report_(shortage, freed + "less is read ahead and cached for a while, repeated as it was");
    return;
  }
  if (micro_batch_.halve()) {
    ++counts_.halved;
    report_(shortage, freed + "micro-batch " + std::to_string(size()) + " from here on");
    return;
  }
  const std::string less = keep_less_ ? keep_less_() : "";
  if (less.empty()) advice_.give_up(shortage);
  ++counts_.recomputed;
  report_(shortage, freed + less);
}

// The micro-batch may grow again where the peak of this window, with activations of twice the size, stays below the
// bound.
void Retry::succeeded() {
  in_a_row_ = 0;
  restore_speed_when_due();
  if (micro_batch_.is_largest()) return;
  const LedgerReading ledger = read_ledger();
  const int64_t growing = take_recent_peak(Owner::activations) - ledger.live(Owner::activations);
  if (micro_batch_.succeeded(ledger.held_bytes - ledger.slack_bytes + growing, growing, memory_bound()))
    ++counts_.grown;
}

}  // namespace headroom
