// The frame every chart stands in. In a page: an SVG that stretches to the width there is, and around it, in HTML so
// that it never shrinks with the picture, axes, legend and numbers. In a file (svg_file()): SVG alone. Deterministic:
// the same series make the same bytes.
#pragma once

#include <string>
#include <vector>

#include "report/decimated.hpp"
#include "report/scale.hpp"

namespace headroom {

// Shapes are drawn in a square of this side, (0, 0) at its upper left; it is stretched, so strokes do not scale.
inline constexpr int plot_side = 10000;

// What shapes are drawn in. In a page it is stretched; in a file a unit is a tenth of a pixel.
struct PlotSize {
  int width = plot_side, height = plot_side;
};

class PlotFrame {
 public:
  // `title` and `description` are plain text; the description is what somebody hears who sees no picture.
  PlotFrame(std::string title, std::string description, Scale x, Scale y, PlotSize size = {});

  int column(double x) const;                   // 0 at the left
  int row(double y) const;                      // 0 at the top
  std::string point(double x, double y) const;  // "120 9800"

  void note(std::string text) { note_ = std::move(text); }  // beside the title
  void shape(std::string svg) { shapes_ += std::move(svg); }
  void horizontal(double y, const std::string& classes);  // a line through the plot
  // What lies between two lines through the points (x[i], floor[i]) and (x[i], roof[i]). `name`: plain text.
  void area(const std::string& classes, const std::string& name, const std::vector<double>& x,
            const std::vector<double>& floor, const std::vector<double>& roof);
  // A line from top to bottom with words beside it, which a page does not show: there the legend has them.
  void vertical(double x, const std::string& classes, const std::string& words);

  // `classes`: the swatch's, with "box" for a filled one; plain text beside it, `remark` in small print. `stands_out`:
  // in a file, as what was killed.
  void legend(const std::string& classes, const std::string& text, const std::string& remark = "",
              bool stands_out = false);
  void below(std::string html) { below_ += std::move(html); }  // lanes, tables
  void tall() { classes_ += " tall"; }
  void without_pointer() { has_pointer_ = false; }  // points have words of their own

  std::string html() const;
  // For svg_file(): at (left, top) in pixels; the title stands above it.
  std::string svg(double left, double top, bool with_x_labels) const;
  std::string legend_svg(double left, double top) const;
  const PlotSize& size() const { return size_; }

 private:
  struct Entry {
    std::string classes, text, remark;
    bool stands_out;
  };
  struct Mark {
    double place;  // 0 to 1
    std::string words;
  };
  std::string axes(int tick_length) const;
  std::string labels() const;
  std::string title_, description_, note_;
  Scale x_, y_;
  bool has_pointer_ = true;
  PlotSize size_;
  std::string classes_ = "plot", shapes_, below_;
  std::vector<Entry> legend_;
  std::vector<Mark> marks_;
};

// The class of the nth series' colour; the palette stays apart for colour-blind eyes, and begins anew after eight.
std::string colour_class(size_t number);

// A table; cells and heading are plain text. The first column is a row's name.
std::string table_html(const std::vector<std::string>& heading, const std::vector<std::vector<std::string>>& rows);

struct Cell {
  std::string text;
  std::string order = text;  // what sorting goes by: a plain number, or the text; "" comes last
  std::string link = "";     // a path below the page's folder
};
// The same, sorted by a click on a heading. `marked`: the number of the row that stands out; -1: none.
std::string sortable_table(const std::vector<std::string>& heading, const std::vector<std::vector<Cell>>& rows,
                           int64_t marked);

// What can be opened: <details>. `html` is HTML, `summary` plain text.
std::string folded(const std::string& summary, const std::string& html, bool open = false);

// Plots as an SVG file that needs nothing else, for light and dark pages: what `headroom watch --svg` writes. The same
// PlotFrame stands in a page's HTML with PlotFrame::html().

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
