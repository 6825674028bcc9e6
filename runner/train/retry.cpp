#include "train/retry.hpp"

#include "memory/budget.hpp"

namespace headroom {

void Retry::after(const Shortage& shortage) {
  const std::string freed = std::to_string(purge_tensor_memory(device_) >> 20) + " MB of free memory given back, ";
  settle_growth();
  take_recent_peak(Owner::activations);
  if (++in_a_row_ == 1) {
    ++counts_.repeated;
    report_(shortage, freed + "repeated as it was");
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

void Retry::succeeded() {
  in_a_row_ = 0;
  if (micro_batch_.is_largest()) return;
  const LedgerReading ledger = read_ledger();
  const int64_t growing = take_recent_peak(Owner::activations) - ledger.live(Owner::activations);
  if (micro_batch_.went_through(ledger.held_bytes - ledger.slack_bytes + growing, growing, memory_limit()))
    ++counts_.grown;
}

}  // namespace headroom
