#include "report/curves.hpp"

#include <cmath>

#include "report/page.hpp"
#include "report/plot_frame.hpp"

namespace headroom {

namespace {

// Without any point the lowest value lies above the highest.
struct Bounds {
  double first_x = INFINITY, last_x = -INFINITY, lowest = INFINITY, highest = -INFINITY;
};

Bounds bounds_of(const std::vector<Curve>& curves) {
  Bounds bounds;
  for (const Curve& curve : curves) {
    if (curve.points->empty()) continue;
    bounds.first_x = std::min(bounds.first_x, curve.points->first_x());
    for (const auto& [x, cell] : curve.points->entries()) {
      bounds.last_x = std::max(bounds.last_x, cell.last_x);
      bounds.lowest = std::min(bounds.lowest, cell.lowest);
      bounds.highest = std::max(bounds.highest, cell.highest);
    }
  }
  return bounds;
}

// Every column's lowest and highest value, in the order in which they came.
std::string path_of(const PlotFrame& frame, const Curve& curve) {
  std::string path = "M";
  const auto add = [&](double x, double y) { path += (path.size() > 1 ? "L" : "") + frame.point(x, y); };
  for (const auto& [x, cell] : curve.points->entries()) {
    const bool rises = cell.lowest_x <= cell.highest_x;
    add(rises ? cell.lowest_x : cell.highest_x, rises ? cell.lowest : cell.highest);
    if (cell.count > 1) add(rises ? cell.highest_x : cell.lowest_x, rises ? cell.highest : cell.lowest);
  }
  const Extremes& end = curve.points->entries().back().cell;
  // Of more than two values the last may be neither extreme, and the curve has to end there all the same.
  if (end.count > 2) add(end.last_x, end.last);
  return path;
}

void draw(PlotFrame& frame, const Curve& curve) {
  // Dots mark single values: of more entries they would run together.
  constexpr size_t few = 60;
  const std::string classes = curve.classes + (curve.faint ? " faint" : "");
  frame.shape("<path class=\"line " + classes + "\" data-name=\"" + escape_html(curve.name) + "\" d=\"" +
              path_of(frame, curve) + "\"/>\n");
  if (curve.points->entries().size() > few || curve.faint) return;
  // A line of length 0 with round ends is a dot, and stays round where the picture is stretched.
  std::string dots;
  for (const auto& [x, cell] : curve.points->entries()) dots += "M" + frame.point(cell.last_x, cell.last) + "h0";
  frame.shape("<path class=\"dots " + classes + "\" d=\"" + dots + "\"/>\n");
}

std::string numbers(const CurveChart& chart) {
  std::vector<std::vector<std::string>> rows;
  for (const Curve& curve : chart.curves) {
    const Bounds bounds = bounds_of({curve});
    const auto& entries = curve.points->entries();
    if (entries.empty()) continue;
    int64_t count = 0;
    for (const auto& entry : entries) count += entry.cell.count;
    rows.push_back({curve.name, amount_text(bounds.lowest, chart.y), amount_text(bounds.highest, chart.y),
                    amount_text(entries.back().cell.last, chart.y),
                    amount_text(entries.back().cell.last_x, Quantity::count), std::to_string(count)});
  }
  return folded("numbers", table_html({"series", "lowest", "highest", "last", "at " + chart.x_name, "values"}, rows));
}

std::string description(const CurveChart& chart, const Bounds& bounds) {
  std::string text = chart.title + " over " + chart.x_name + "s " + amount_text(bounds.first_x, Quantity::count) +
                     " to " + amount_text(bounds.last_x, Quantity::count);
  for (const Curve& curve : chart.curves) {
    if (!curve.points->empty())
      text += "; " + curve.name + " ends at " + amount_text(curve.points->entries().back().cell.last, chart.y);
  }
  return text;
}

}  // namespace

std::string curve_chart(const CurveChart& chart) {
  const Bounds bounds = bounds_of(chart.curves);
  // No point, or none that is a number.
  if (!(bounds.highest >= bounds.lowest)) return "";
  const bool has_curve = std::any_of(chart.curves.begin(), chart.curves.end(),
                                     [](const Curve& c) { return c.points->entries().size() > 1; });
  if (!has_curve && !chart.wanted_anyway) return "";
  const Scale y = chart.linear ? Scale::rounded(bounds.lowest, bounds.highest, chart.y)
                               : Scale::fitting(bounds.lowest, bounds.highest, chart.y);
  PlotFrame frame(chart.title, description(chart, bounds),
                  Scale::exact(std::min(0.0, bounds.first_x), bounds.last_x, Quantity::count, 5), y);
  frame.note(chart.note + (y.is_logarithmic() ? (chart.note.empty() ? "log scale" : ", log scale") : ""));
  if (chart.marked_x) {
    // 10000 is plot_side: from top to bottom.
    frame.shape("<path class=\"mark\" d=\"M" + std::to_string(frame.column(*chart.marked_x)) + " 0v10000\"/>\n");
  }
  // SVG paints in the order of the file: earlier shapes are behind later ones.
  for (const bool faint : {true, false}) {
    for (const Curve& curve : chart.curves) {
      if (curve.faint == faint && !curve.points->empty()) draw(frame, curve);
    }
  }
  for (const Curve& curve : chart.curves) {
    if (!curve.points->empty()) frame.legend(curve.classes + (curve.faint ? " faint" : ""), curve.name);
  }
  if (chart.marked_x && !chart.mark.empty()) frame.legend("mark", chart.mark);
  frame.below(numbers(chart));
  return frame.html();
}

}  // namespace headroom
