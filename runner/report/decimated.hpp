// A series of any length in constant memory. As soon as there are more entries than a picture has columns, neighbours
// are merged into one cell; a cell keeps what has to be shown of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headroom {

// `Cell` is copyable and has void absorb(const Cell& later). Entries are added in the order of x; a smaller x counts as
// the last one.
template <typename Cell>
class Decimated {
 public:
  struct Entry {
    double x;
    Cell cell;
  };

  // Keeps between `columns` and twice as many entries, once that many were added.
  explicit Decimated(size_t columns = 400) : most_(2 * columns) {}

  void add(double x, const Cell& cell) {
    if (entries_.empty()) {
      first_x_ = x;
    } else {
      x = std::max(x, entries_.back().x);
      if (width_ > 0 && column(x) == column(entries_.back().x)) return entries_.back().cell.absorb(cell);
    }
    entries_.push_back({x, cell});
    if (entries_.size() > most_) halve();
  }

  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  // The x of the first entry that was added.
  double first_x() const { return first_x_; }

 private:
  double column(double x) const { return std::floor((x - first_x_) / width_); }

  void halve() {
    const double span = entries_.back().x - first_x_;
    width_ = std::max(2 * width_, 2 * span / static_cast<double>(most_));
    std::vector<Entry> kept;
    for (const Entry& entry : entries_) {
      // All at one place: only their number tells them apart.
      const bool same = !kept.empty() && (width_ == 0 || column(entry.x) == column(kept.back().x));
      if (same) {
        kept.back().cell.absorb(entry.cell);
      } else {
        kept.push_back(entry);
      }
    }
    entries_ = std::move(kept);
  }

  size_t most_;
  double first_x_ = 0, width_ = 0;
  std::vector<Entry> entries_;
};

// The lowest and highest point of a curve within a column.
struct Extremes {
  double lowest_x = 0, lowest = 0, highest_x = 0, highest = 0, last_x = 0, last = 0;
  int64_t count = 0;
  static Extremes of(double x, double y) { return {x, y, x, y, x, y, 1}; }
  void absorb(const Extremes& later) {
    if (later.lowest < lowest) lowest = later.lowest, lowest_x = later.lowest_x;
    if (later.highest > highest) highest = later.highest, highest_x = later.highest_x;
    last = later.last, last_x = later.last_x;
    count += later.count;
  }
};

}  // namespace headroom
