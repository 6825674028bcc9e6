// The frame every chart stands in: an SVG that stretches to the width there is, and around it, in HTML so that it never
// shrinks with the picture, axes, legend and numbers. Deterministic: the same series make the same bytes.
#pragma once

#include <string>
#include <vector>

#include "report/decimated.hpp"
#include "report/scale.hpp"

namespace headroom {

// Shapes are drawn in a square of this side, (0, 0) at its upper left; it is stretched, so strokes do not scale.
inline constexpr int plot_side = 10000;

class PlotFrame {
 public:
  // `title` and `description` are plain text; the description is what somebody hears who sees no picture.
  PlotFrame(std::string title, std::string description, Scale x, Scale y);

  int column(double x) const;                   // 0 at the left
  int row(double y) const;                      // 0 at the top
  std::string point(double x, double y) const;  // "120 9800"

  void note(std::string text) { note_ = std::move(text); }  // beside the title
  void shape(std::string svg) { shapes_ += std::move(svg); }
  void horizontal(double y, const std::string& classes);  // a line through the plot
  // `classes`: the swatch's; plain text beside it.
  void legend(const std::string& classes, const std::string& text);
  void below(std::string html) { below_ += std::move(html); }  // lanes, tables
  void tall() { classes_ += " tall"; }
  void without_pointer() { has_pointer_ = false; }  // points have words of their own
  std::string html() const;

 private:
  std::string axes() const;
  std::string labels() const;
  std::string title_, description_, note_;
  Scale x_, y_;
  bool has_pointer_ = true;
  std::string classes_ = "plot", shapes_, legend_, below_;
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

}  // namespace headroom
