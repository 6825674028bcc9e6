#include "cli/svg_page.hpp"

#include <array>
#include <cstdarg>
#include <cstdio>

#include "report/html.hpp"

namespace headroom {

namespace {

// Plain rules, no variables: not every program that shows an SVG knows those.
constexpr const char* style = R"(<style>
svg { font: 13px system-ui, "DejaVu Sans", sans-serif }
.page { fill: #ffffff } text { fill: #1c1f23 } .soft { fill: #5d6670 } .small { font-size: 11.5px }
.title { font-size: 16px; font-weight: 600 } .grid { stroke: #d9dde2; stroke-width: 1px }
.limit { stroke: #1c1f23; stroke-width: 1.5px; stroke-dasharray: 6 4; fill: none }
.used { stroke: #5d6670; stroke-width: 1.5px; fill: none } .pressure { fill: #5d6670; opacity: .75 }
.kill { stroke: #c62828; stroke-width: 2px } .verdict { fill: #c62828 }
.killed { fill: #c62828; font-weight: 600 }
.halo { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round }
.area { stroke: #ffffff; stroke-width: .75px }
.a0 { fill: #0072b2 } .a1 { fill: #e69f00 } .a2 { fill: #009e73 } .a3 { fill: #cc79a7 } .a4 { fill: #56b4e9 }
.a5 { fill: #7a5fb0 } .a6 { fill: #9aa1a9 }
@media (prefers-color-scheme: dark) {
.page { fill: #16191d } text { fill: #e6e9ec } .soft { fill: #9aa4ae } .grid { stroke: #343a41 }
.limit { stroke: #e6e9ec } .used { stroke: #9aa4ae } .pressure { fill: #9aa4ae }
.kill { stroke: #ff6b5e } .killed, .verdict { fill: #ff6b5e } .halo, .area { stroke: #16191d }
.a0 { fill: #3d9bd9 } .a1 { fill: #f0b032 } .a2 { fill: #2bbf92 } .a3 { fill: #dc90bd } .a4 { fill: #86cdf5 }
.a5 { fill: #9d83d6 } .a6 { fill: #6d757d }
}
</style>
)";

}  // namespace

SvgPage::SvgPage(double width, double height) {
  add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n", width,
      height, width, height);
  raw(style);
  add("<rect class=\"page\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
}

void SvgPage::add(const char* form, ...) {
  std::array<char, 512> text;
  va_list values;
  va_start(values, form);
  std::vsnprintf(text.data(), text.size(), form, values);
  va_end(values);
  svg_ += text.data();
}

void SvgPage::text(double x, double y, const char* classes, const std::string& words, const char* anchor) {
  add("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, classes, anchor);
  svg_ += escape_html(words) + "</text>\n";
}

void SvgPage::line(double x1, double y1, double x2, double y2, const char* classes) {
  add("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, classes);
}

}  // namespace headroom
