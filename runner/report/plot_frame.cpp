#include "report/plot_frame.hpp"

#include <array>
#include <cstdio>

#include "record/numbers.hpp"
#include "report/page.hpp"

namespace headroom {

namespace {

std::string percent(double place) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2f%%", 100 * place);
  return text.data();
}

// What the script needs to turn places back into values.
std::string range(const char* name, const Scale& scale) {
  // In the order of Quantity; the script compares these words.
  constexpr std::array<const char*, 4> quantities = {"number", "count", "bytes", "seconds"};
  return std::string(" data-") + name + "=\"" + exact_number(scale.lowest()) + " " + exact_number(scale.highest()) +
         " " + quantities[static_cast<size_t>(scale.quantity())] + (scale.is_logarithmic() ? " log" : "") + "\"";
}

// Far outside the plot is far enough.
int placed(double place, int side) { return static_cast<int>(std::lround(std::clamp(place, -0.5, 1.5) * side)); }

}  // namespace

PlotFrame::PlotFrame(std::string title, std::string description, Scale x, Scale y, PlotSize size)
    : title_(std::move(title)), description_(std::move(description)), x_(x), y_(y), size_(size) {}

int PlotFrame::column(double x) const { return placed(x_.place(x), size_.width); }

// SVG counts rows from the top, a scale from the bottom.
int PlotFrame::row(double y) const { return size_.height - placed(y_.place(y), size_.height); }

std::string PlotFrame::point(double x, double y) const {
  return std::to_string(column(x)) + " " + std::to_string(row(y));
}

void PlotFrame::horizontal(double y, const std::string& classes) {
  shape("<path class=\"" + classes + "\" d=\"M0 " + std::to_string(row(y)) + "H" + std::to_string(size_.width) +
        "\"/>\n");
}

void PlotFrame::area(const std::string& classes, const std::string& name, const std::vector<double>& x,
                     const std::vector<double>& floor, const std::vector<double>& roof) {
  // The roof from left to right, then the floor back: the script of the page reads both halves from this order.
  std::string path = "M";
  for (size_t i = 0; i < x.size(); ++i) path += (i == 0 ? "" : "L") + point(x[i], roof[i]);
  for (size_t i = x.size(); i-- > 0;) path += "L" + point(x[i], floor[i]);
  shape("<path class=\"area " + classes + "\" data-name=\"" + escape_html(name) + "\" d=\"" + path + "Z\"/>\n");
}

void PlotFrame::vertical(double x, const std::string& classes, const std::string& words) {
  shape("<path class=\"" + classes + "\" d=\"M" + std::to_string(column(x)) + " 0v" + std::to_string(size_.height) +
        "\"/>\n");
  marks_.push_back({x_.place(x), words});
}

void PlotFrame::legend(const std::string& classes, const std::string& text, const std::string& remark,
                       bool stands_out) {
  legend_.push_back({classes, text, remark, stands_out});
}

std::string PlotFrame::axes(int tick_length) const {
  const std::string width = std::to_string(size_.width), height = std::to_string(size_.height);
  std::string path;
  for (const Tick& tick : y_.ticks())
    path += "M0 " + std::to_string(size_.height - placed(tick.place, size_.height)) + "H" + width;
  // From the lower edge: a negative length points up into the plot.
  std::string ticks;
  for (const Tick& tick : x_.ticks())
    ticks += "M" + std::to_string(placed(tick.place, size_.width)) + " " + height + "v" + std::to_string(tick_length);
  return "<path class=\"grid\" d=\"" + path + "\"/><path class=\"grid\" d=\"" + ticks + "\"/>\n";
}

// In HTML, because words inside the stretched SVG would be stretched, too.
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
  if (!legend_.empty()) html += "<ul class=\"legend\">";
  for (const Entry& entry : legend_) {
    html += "<li><i class=\"swatch " + entry.classes + "\"></i>" + escape_html(entry.text);
    html += (entry.remark.empty() ? "" : " <small>" + escape_html(entry.remark) + "</small>") + "</li>";
  }
  if (!legend_.empty()) html += "</ul>";
  html += "\n<div class=\"" + classes_ + "\"" + (has_pointer_ ? range("x", x_) + range("y", y_) : "") + ">";
  html +=
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 10000 10000\" preserveAspectRatio=\"none\" "
      "role=\"img\">";
  html += "<title>" + escape_html(title_) + "</title><desc>" + escape_html(description_) + "</desc>\n";
  // Hidden from screen readers: the description says what numbers without their axis cannot.
  html += axes(-150) + shapes_ + "</svg><div aria-hidden=\"true\">" + labels() + "</div></div>\n";
  return html + below_ + "</figure>\n";
}

std::string PlotFrame::svg(double left, double top, bool with_x_labels) const {
  const double width = size_.width / 10.0, height = size_.height / 10.0;
  std::string svg = svg_text(left, top - 12, "soft small", title_);
  svg += "<g transform=\"translate(" + exact_number(left) + " " + exact_number(top) + ") scale(.1)\">\n" + axes(45) +
         shapes_ + "</g>\n";
  for (const Tick& tick : y_.ticks())
    svg += svg_text(left - 8, top + height * (1 - tick.place) + 4, "soft small", tick.label, "end");
  for (const Tick& tick : with_x_labels ? x_.ticks() : std::vector<Tick>())
    svg += svg_text(left + width * tick.place, top + height + 20, "soft small", tick.label, "middle");
  // A line of its own for each mark: words of marks near each other do not overlap.
  double row = top + 12;
  for (const Mark& mark : marks_) {
    // Words run towards the middle, so that they stay inside the plot.
    const bool to_the_left = mark.place > 0.5;
    svg += svg_text(left + width * mark.place + (to_the_left ? -6 : 6), row, "killed halo small", mark.words,
                    to_the_left ? "end" : "start");
    row += 16;
  }
  return svg;
}

std::string PlotFrame::legend_svg(double left, double top) const {
  std::string svg;
  for (const Entry& entry : legend_) {
    const bool is_box = entry.classes.starts_with("box ");
    svg += "<path class=\"" + (is_box ? "area " + entry.classes.substr(4) : entry.classes) +
           "\" transform=\"translate(" + exact_number(left) + " " + exact_number(top - 10) + ") scale(.1)\" d=\"" +
           (is_box ? "M0 0H120V120H0Z" : "M0 60H140") + "\"/>\n";
    svg += svg_text(left + 20, top, entry.stands_out ? "killed" : "name", entry.text);
    if (!entry.remark.empty()) svg += svg_text(left + 20, top + 15, "soft small", entry.remark);
    top += entry.remark.empty() ? 20 : 36;
  }
  return svg;
}

std::string colour_class(size_t number) { return "c" + std::to_string(number % series_colours); }

namespace {

std::string table_head(const std::vector<std::string>& heading) {
  if (heading.empty()) return "";
  std::string cells;
  for (const std::string& cell : heading) cells += "<th scope=\"col\">" + escape_html(cell) + "</th>";
  return "<thead><tr>" + cells + "</tr></thead>";
}

// A path as a link: what is neither a letter, a digit nor harmless is written as %xx.
std::string link_html(const std::string& path, const std::string& text) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-_.~=";
  // Behind "./" a path is relative, even where it begins as "//host" or "scheme:" do (RFC 3986, 4.2).
  std::string link = "./";
  for (const char c : path) {
    std::array<char, 8> code;
    std::snprintf(code.data(), code.size(), "%%%02X", static_cast<unsigned char>(c));
    link += plain.find(c) != std::string_view::npos ? std::string(1, c) : std::string(code.data());
  }
  return "<a href=\"" + link + "\">" + escape_html(text) + "</a>";
}

std::string cell_html(const Cell& cell, bool is_name) {
  const char* name = is_name ? "th" : "td";
  // The script sorts by data-value, or by the text where there is none.
  const std::string order = cell.order == cell.text ? "" : " data-value=\"" + escape_html(cell.order) + "\"";
  constexpr size_t longest_line = 26;  // longer words wrap
  const std::string classes = cell.text.size() > longest_line ? " class=\"long\"" : "";
  return std::string("<") + name + (is_name ? " scope=\"row\"" : "") + classes + order + ">" +
         (cell.link.empty() ? escape_html(cell.text) : link_html(cell.link, cell.text)) + "</" + name + ">";
}

}  // namespace

std::string table_html(const std::vector<std::string>& heading, const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<div class=\"wide\"><table>" + table_head(heading) + "<tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) html += cell_html({row[i]}, i == 0);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string sortable_table(const std::vector<std::string>& heading, const std::vector<std::vector<Cell>>& rows,
                           int64_t marked) {
  std::string html = "<div class=\"wide\"><table class=\"sortable\">" + table_head(heading) + "<tbody>\n";
  for (size_t number = 0; number < rows.size(); ++number) {
    html += static_cast<int64_t>(number) == marked ? "<tr class=\"best\">" : "<tr>";
    for (size_t i = 0; i < rows[number].size(); ++i) html += cell_html(rows[number][i], i == 0);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string folded(const std::string& summary, const std::string& html, bool open) {
  return std::string("<details") + (open ? " open" : "") + "><summary>" + escape_html(summary) + "</summary>" + html +
         "</details>\n";
}

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
