// A shape as messages write it: "[3, 224, 224]".
#pragma once

#include <string>

namespace headroom::sdk {

// Of any range of extents.
template <class Shape>
std::string shape_text(const Shape& shape) {
  std::string text;
  for (const auto extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return '[' + text + ']';
}

}  // namespace headroom::sdk
