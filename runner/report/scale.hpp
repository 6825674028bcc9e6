// Axes: maps values to places between 0 and 1, and chooses round ticks with readable labels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

enum class Quantity { number, count, bytes, seconds };

// Short, for axes, tables and tooltips: "12.5 MiB", "2 min 10 s", "0.1234", "1,200".
std::string amount_text(double value, Quantity quantity);

struct Tick {
  double place;  // 0 to 1
  std::string label;
};

class Scale {
 public:
  // From the round number below `lowest` to the one above `highest`; from 0 where that costs little.
  static Scale rounded(double lowest, double highest, Quantity quantity, int ticks = 5);
  // Exactly from `lowest` to `highest`: time and steps.
  static Scale exact(double lowest, double highest, Quantity quantity, int ticks = 6);
  // Logarithmic where all values are above 0 and span more than two decades, else rounded().
  static Scale fitting(double lowest, double highest, Quantity quantity);

  double place(double value) const;  // outside the scale: below 0, above 1
  std::vector<Tick> ticks() const;   // in rising order
  bool is_logarithmic() const { return logarithmic_; }
  double lowest() const { return lowest_; }
  double highest() const { return highest_; }
  Quantity quantity() const { return quantity_; }

 private:
  Scale(double lowest, double highest, double step, Quantity quantity, bool logarithmic = false)
      : lowest_(lowest), highest_(highest), step_(step), quantity_(quantity), logarithmic_(logarithmic) {}
  std::vector<Tick> logarithmic_ticks() const;
  double lowest_, highest_, step_;
  Quantity quantity_;
  bool logarithmic_;
};

}  // namespace headroom
