// Curves over steps: loss, metrics, learning rate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/decimated.hpp"
#include "report/scale.hpp"

namespace headroom {

struct Curve {
  std::string name;     // "train", "val"
  std::string classes;  // its colour
  const Decimated<Extremes>* points = nullptr;
  bool faint = false;  // drawn behind the others: noisy values of single steps
};

struct CurveChart {
  std::string title, note;
  std::string x_name = "step";
  Quantity y = Quantity::number;
  std::vector<Curve> curves;
  std::optional<double> marked_x;  // a vertical line: where the best checkpoint is
  std::string mark;                // the line's name in the legend
  bool wanted_anyway = false;
  bool linear = false;  // never a log scale
};

// "" where there are no points. A curve of a single value is left out, unless `wanted_anyway`.
std::string curve_chart(const CurveChart& chart);

}  // namespace headroom
