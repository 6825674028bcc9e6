// A table whose cells are coloured by their value, from dark (low) to bright (high), in a scale that is safe for colour
// blindness. The cells show the numbers too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/scale.hpp"

namespace headroom {

struct HeatCell {
  std::optional<double> value;
  std::string words = "";  // shown in place of a value: "infeasible, 1.2 GiB"
  bool marked = false;     // highlighted: the best
};

struct HeatMap {
  std::string title;
  Quantity quantity = Quantity::number;
  std::string row_key, column_key;
  std::vector<std::string> rows, columns;    // values of the keys
  std::vector<std::vector<HeatCell>> cells;  // by row, then column
};

std::string heat_map_html(const HeatMap& map);

// The scale's colour at a place from 0 to 1, "#00224e"; and a style of that colour with readable text.
std::string heat_ground(double place);
std::string heat_style(double place);

}  // namespace headroom
