#include "report/svg_file.hpp"

#include <array>
#include <cstdio>

#include "report/page.hpp"
#include "report/palette.hpp"

namespace headroom {

namespace {

// In pixels. The legend begins to the right of the plots, which are 620 wide.
constexpr int width = 960, left = 70, legend_left = 712, top = 112, gap = 44, bottom = 40;

// Shapes are drawn in tenths of a pixel, so their strokes are ten times as wide. Rules without variables: not every
// program that shows an SVG knows those.
constexpr const char* form_rules = R"(
svg { font: 13px system-ui, "DejaVu Sans", sans-serif } path { fill: none; stroke-linejoin: round }
.small { font-size: 11.5px } .title { font-size: 16px; font-weight: 600 } .killed { font-weight: 600 }
.halo { paint-order: stroke; stroke-width: 4px; stroke-linejoin: round } .grid { stroke-width: 10px }
.area { fill: currentColor; stroke-width: 7px } .line, .limit { stroke-width: 15px } .line { stroke: currentColor }
.limit { stroke-dasharray: 60 40 } .kill { stroke-width: 20px }
)";
constexpr const char* colour_rules = R"(.page { fill: $page } text { fill: $text } .soft { fill: $soft }
.killed, .bad { fill: $bad } .kill { stroke: $bad } .halo, .area { stroke: $page } .grid { stroke: $edge } .limit { stroke: $text }
)";

std::string colours(bool dark) {
  return with_colours(colour_rules, dark) + for_each_colour(".$N { color: $C } ", dark, palette.size()) + "\n";
}

}  // namespace

std::string svg_text(double x, double y, const std::string& classes, const std::string& words, const char* anchor) {
  std::array<char, 64> place;
  std::snprintf(place.data(), place.size(), "<text x=\"%.1f\" y=\"%.1f\" class=\"", x, y);
  return place.data() + classes + "\" text-anchor=\"" + anchor + "\">" + escape_html(words) + "</text>\n";
}

std::string svg_file(const std::vector<SvgLine>& head, const std::vector<PlotFrame>& plots) {
  std::string body;
  double row = 32;
  for (const SvgLine& line : head) {
    body += svg_text(24, row, line.classes, line.text);
    row += line.classes == "title" ? 22 : 17;
  }
  double at = top;
  for (const PlotFrame& plot : plots) {
    // All plots share one time axis, so the last one alone has its labels.
    body += plot.svg(left, at, &plot == &plots.back());
    at += plot.size().height / 10.0 + gap;
  }
  if (!plots.empty()) body += plots.front().legend_svg(legend_left, top + 8);
  const int height = static_cast<int>(at) - gap + bottom;
  const std::string size = std::to_string(width) + " " + std::to_string(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size + "\" width=\"" + std::to_string(width) +
         "\" height=\"" + std::to_string(height) + "\">\n<style>" + form_rules + colours(false) +
         "@media (prefers-color-scheme: dark) {\n" + colours(true) + "}\n</style>\n<rect class=\"page\" width=\"" +
         std::to_string(width) + "\" height=\"" + std::to_string(height) + "\"/>\n" + body + "</svg>\n";
}

}  // namespace headroom
