// Numbers as people and tables read them. Never depends on the locale.
#pragma once

#include <string>

namespace headroom {

// So many significant digits: 0.1234, 1234, 1.234e-07.
std::string short_number(double value, int digits = 4);
std::string exact_number(double value);      // shortest text that reads back equal; nan, inf, -inf
std::string short_duration(double seconds);  // 0:42, 1:05:09, 2d 03:00

std::string csv_field(const std::string& text);  // quoted where it has to be

}  // namespace headroom
