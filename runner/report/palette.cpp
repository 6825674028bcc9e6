#include "report/palette.hpp"

#include <string_view>

namespace headroom {

namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  // Goes on behind what it put in, so that `to` may hold `from`.
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::string for_each_colour(const std::string& form, bool dark, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    std::string one = form;
    replace_all(one, "$N", palette[i].name);
    replace_all(one, "$C", dark ? palette[i].dark : palette[i].light);
    text += one;
  }
  return text;
}

std::string with_colours(std::string text, bool dark) {
  // No colour's name begins with another's, so the order does not matter.
  for (const PaletteColour& colour : palette)
    replace_all(text, std::string("$") + colour.name, dark ? colour.dark : colour.light);
  return text;
}

}  // namespace headroom
