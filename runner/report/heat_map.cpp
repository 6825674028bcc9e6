#include "report/heat_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "report/page.hpp"

namespace headroom {

namespace {

using Colour = std::array<double, 3>;

// Stops of the "cividis" scale.
constexpr std::array<Colour, 6> stops = {
    {{0, 34, 78}, {53, 69, 108}, {102, 105, 112}, {148, 142, 119}, {200, 184, 102}, {254, 232, 56}}};

Colour colour_at(double place) {
  const double at = std::clamp(place, 0.0, 1.0) * (stops.size() - 1);
  const auto below = std::min(static_cast<size_t>(at), stops.size() - 2);
  Colour colour;
  for (size_t i = 0; i < 3; ++i)
    colour[i] = std::lerp(stops[below][i], stops[below + 1][i], at - static_cast<double>(below));
  return colour;
}

std::string cell_html(const HeatCell& cell, double lowest, double highest, Quantity quantity) {
  if (!cell.value)
    return "<td class=\"none\"><span>" + escape_html(cell.words.empty() ? "-" : cell.words) + "</span></td>";
  // Where all values are equal they get the middle of the scale.
  const double place = highest > lowest ? (*cell.value - lowest) / (highest - lowest) : 0.5;
  return std::string("<td") + (cell.marked ? " class=\"top\"" : "") + " style=\"" + heat_style(place) + "\">" +
         escape_html(amount_text(*cell.value, quantity)) + "</td>";
}

}  // namespace

std::string heat_ground(double place) {
  const Colour colour = colour_at(place);
  std::array<char, 8> text;
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", static_cast<unsigned>(colour[0]) & 0xFFu,
                static_cast<unsigned>(colour[1]) & 0xFFu, static_cast<unsigned>(colour[2]) & 0xFFu);
  return text.data();
}

std::string heat_style(double place) {
  // Black words on the brighter part of the scale, white ones on the darker: both stay readable.
  return "background:" + heat_ground(place) + (place > 0.55 ? ";color:#000" : ";color:#fff");
}

std::string heat_map_html(const HeatMap& map) {
  double lowest = INFINITY, highest = -INFINITY;
  for (const auto& row : map.cells) {
    for (const HeatCell& cell : row) {
      if (!cell.value) continue;
      lowest = std::min(lowest, *cell.value);
      highest = std::max(highest, *cell.value);
    }
  }
  const std::string axes = "down: " + map.row_key + ", across: " + map.column_key;
  std::string html = "<figure><div class=\"wide\"><table class=\"heat\"><caption>" + escape_html(map.title) +
                     "<small>" + escape_html(axes) + "</small></caption><thead><tr><td></td>";
  for (const std::string& column : map.columns) html += "<th scope=\"col\">" + escape_html(column) + "</th>";
  html += "</tr></thead><tbody>\n";
  for (size_t row = 0; row < map.rows.size(); ++row) {
    html += "<tr><th scope=\"row\">" + escape_html(map.rows[row]) + "</th>";
    for (const HeatCell& cell : map.cells[row]) html += cell_html(cell, lowest, highest, map.quantity);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div></figure>\n";
}

}  // namespace headroom
