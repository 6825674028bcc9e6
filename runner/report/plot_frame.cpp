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
  html += "\n<div class=\"" + classes_ + "\"" + (has_pointer_ ? range("x", x_) + range("y", y_) : "") + ">";
  html +=
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 10000 10000\" preserveAspectRatio=\"none\" "
      "role=\"img\">";
  html += "<title>" + escape_html(title_) + "</title><desc>" + escape_html(description_) + "</desc>\n";
  html += axes() + shapes_ + "</svg><div aria-hidden=\"true\">" + labels() + "</div></div>\n";
  return html + below_ + "</figure>\n";
}

std::string colour_class(size_t number) { return "c" + std::to_string(number % 8); }

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

}  // namespace headroom
