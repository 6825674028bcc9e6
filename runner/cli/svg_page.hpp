// An SVG file of shapes, styled by a few classes whose colours know light and dark.
#pragma once

#include <string>
#include <utility>

namespace headroom {

class SvgPage {
 public:
  SvgPage(double width, double height);                           // with its background
  [[gnu::format(printf, 2, 3)]] void add(const char* form, ...);  // at most 511 characters
  void raw(const std::string& text) { svg_ += text; }
  void text(double x, double y, const char* classes, const std::string& words, const char* anchor = "start");
  void line(double x1, double y1, double x2, double y2, const char* classes);
  std::string take() { return std::move(svg_ += "</svg>\n"); }

 private:
  std::string svg_;
};

}  // namespace headroom
