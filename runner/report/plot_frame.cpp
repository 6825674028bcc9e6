#include "report/plot_frame.hpp"

#include <array>
#include <cstdio>

#include "record/numbers.hpp"
#include "report/html.hpp"

namespace headroom {

namespace {

std::string percent(double place) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2f%%", 100 * place);
  return text.data();
}

// What the script needs to turn places back into values.
std::string range(const char* name, const Scale& scale) {
  constexpr std::array<const char*, 4> quantities = {"number", "count", "bytes", "seconds"};
  return std::string(" data-") + name + "=\"" + exact_number(scale.lowest()) + " " + exact_number(scale.highest()) +
         " " + quantities[static_cast<size_t>(scale.quantity())] + (scale.is_logarithmic() ? " log" : "") + "\"";
}

int placed(double place) { return static_cast<int>(std::lround(std::clamp(place, -0.5, 1.5) * plot_side)); }

}  // namespace

PlotFrame::PlotFrame(std::string title, std::string description, Scale x, Scale y)
    : title_(std::move(title)), description_(std::move(description)), x_(x), y_(y) {}

int PlotFrame::column(double x) const { return placed(x_.place(x)); }

int PlotFrame::row(double y) const { return plot_side - placed(y_.place(y)); }

std::string PlotFrame::point(double x, double y) const {
  return std::to_string(column(x)) + " " + std::to_string(row(y));
}

void PlotFrame::horizontal(double y, const std::string& classes) {
  shape("<path class=\"" + classes + "\" d=\"M0 " + std::to_string(row(y)) + "H" + std::to_string(plot_side) +
        "\"/>\n");
}

void PlotFrame::legend(const std::string& classes, const std::string& text) {
  legend_ += "<li><i class=\"swatch " + classes + "\"></i>" + escape_html(text) + "</li>";
}

std::string PlotFrame::axes() const {
  std::string path;
  for (const Tick& tick : y_.ticks()) path += "M0 " + std::to_string(plot_side - placed(tick.place)) + "H10000";
  std::string ticks;
  for (const Tick& tick : x_.ticks()) ticks += "M" + std::to_string(placed(tick.place)) + " 10000v-150";
  return "<path class=\"grid\" d=\"" + path + "\"/><path class=\"grid\" d=\"" + ticks + "\"/>\n";
}

std::string PlotFrame::labels() const {
  std::string html;
  for (const Tick& tick : y_.ticks())
    html += "<span class=\"y\" style=\"bottom:" + percent(tick.place) + "\">" + escape_html(tick.label) + "</span>";
  for (const Tick& tick : x_.ticks())
    html += "<span class=\"x\" style=\"left:" + percent(tick.place) + "\">" + escape_html(tick.label) + "</span>";
  return html;
}

std::string PlotFrame::html() const {
  std::string html = "<figure><figcaption><b>" + escape_html(title_) + "</b>";
  if (!note_.empty()) html += " <small>" + escape_html(note_) + "</small>";
  html += "</figcaption>";
  if (!legend_.empty()) html += "<ul class=\"legend\">" + legend_ + "</ul>";
  html += "\n<div class=\"" + classes_ + "\"" + range("x", x_) + range("y", y_) + ">";
  html +=
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 10000 10000\" preserveAspectRatio=\"none\" "
      "role=\"img\">";
  html += "<title>" + escape_html(title_) + "</title><desc>" + escape_html(description_) + "</desc>\n";
  html += axes() + shapes_ + "</svg><div aria-hidden=\"true\">" + labels() + "</div></div>\n";
  return html + below_ + "</figure>\n";
}

std::string colour_class(size_t number) { return "c" + std::to_string(number % 8); }

std::string table_html(const std::vector<std::string>& heading, const std::vector<std::vector<std::string>>& rows,
                       bool sortable) {
  std::string cells;
  for (const std::string& cell : heading) cells += "<th scope=\"col\">" + escape_html(cell) + "</th>";
  std::string html = std::string("<div class=\"wide\"><table") + (sortable ? " class=\"sortable\">" : ">");
  if (!heading.empty()) html += "<thead><tr>" + cells + "</tr></thead>";
  html += "<tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      html += (i == 0 ? "<th scope=\"row\">" : "<td>") + escape_html(row[i]) + (i == 0 ? "</th>" : "</td>");
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string folded(const std::string& summary, const std::string& html, bool open) {
  return std::string("<details") + (open ? " open" : "") + "><summary>" + escape_html(summary) + "</summary>" + html +
         "</details>\n";
}

}  // namespace headroom
