// How many samples go through forward and backward at once: a fixed number, or as many as memory allows, found by
// halving when it runs out and doubling back when the measured peaks say that it would fit.
#pragma once

#include <cstdint>

namespace headroom {

class MicroBatch {
 public:
  // Begins at `most`. `adapts`: may change, between 1 and `most`; otherwise it stays.
  MicroBatch(int64_t most, bool adapts) : most_(most), size_(most), adapts_(adapts) {}

  int64_t size() const { return size_; }
  bool adapts() const { return adapts_; }
  bool is_largest() const { return size_ == most_ || !adapts_; }

  // After running out of memory. false: nothing smaller exists, or it is fixed.
  bool halve();

  // After a window (or evaluation batch) that went through: what the process held at its peak, the part of it that
  // grows with the micro-batch, and the limit (0: none). Doubles when twice the growing part fits into 0.9 of the
  // limit, and enough windows went by since it last ran out; each failure doubles how many that is. Returns whether it
  // grew.
  bool succeeded(int64_t peak_bytes, int64_t growing_bytes, int64_t limit_bytes);

  // Under pressure: halves it, and keeps it from growing until allow_growth().
  void shrink_and_hold();
  void allow_growth() { held_back_ = false; }

  // Of a resumed run.
  void restore(int64_t size);

 private:
  static constexpr int64_t first_patience = 20, most_patience = 5120;
  int64_t most_, size_;
  bool adapts_, held_back_ = false;
  int64_t good_windows_ = 0, patience_ = first_patience;
};

}  // namespace headroom
