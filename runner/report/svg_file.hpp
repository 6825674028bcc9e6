// Plots as an SVG file that needs nothing else, for light and dark pages: what `headroom watch --svg` writes. The same
// PlotFrame stands in a page's HTML with PlotFrame::html().
#pragma once

#include <string>
#include <vector>

#include "report/plot_frame.hpp"

namespace headroom {

// The size of a plot in a file, in the units that shapes are drawn in: tenths of a pixel.
inline constexpr PlotSize tall_plot{6200, 3000}, low_plot{6200, 480};

// A line of words: `classes` are "title", "soft", "bad"; plain text, which is not wrapped.
struct SvgLine {
  std::string classes, text;
};

// "<text>" at (x, y) in pixels; `words` are plain text. `anchor`: "start", "middle" or "end".
std::string svg_text(double x, double y, const std::string& classes, const std::string& words,
                     const char* anchor = "start");

// `head` above the plots, one below the other on one time axis, the legend of the first beside them.
std::string svg_file(const std::vector<SvgLine>& head, const std::vector<PlotFrame>& plots);

}  // namespace headroom
