#include "report/rounding.hpp"

#include <algorithm>
#include <cmath>

namespace headroom {

double rounding_tolerance(const std::string& precision) {
  if (precision == "fp64") return 1e-8;
  return precision == "fp32" ? 1e-3 : 2e-2;
}

double relative_difference(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : INFINITY;
  if (a == b) return 0;
  return std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

}  // namespace headroom
