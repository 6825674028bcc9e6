#include "report/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace headroom {

namespace {

// |a - b| against the larger; 0 for two NaN, infinite for one.
double relative_difference(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : INFINITY;
  if (a == b) return 0;
  return std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

}  // namespace

nlohmann::json Agreement::json() const {
  return {{"metric", metric},
          {"largest_difference", largest_difference},
          {"tolerance", tolerance},
          {"compared", compared},
          {"agrees", agrees()}};
}

Agreement agreement_of(std::span<const Metrics> runs, double tolerance) {
  Agreement found{.metric = "", .tolerance = tolerance};
  for (const auto& [name, value] : runs.front()) {
    bool all = true;
    for (const Metrics& run : runs) {
      const auto other = run.find(name);
      all = all && other != run.end();
      if (other == run.end()) continue;
      const double difference = relative_difference(value, other->second);
      if (difference > found.largest_difference) found.largest_difference = difference, found.metric = name;
    }
    found.compared += all ? 1 : 0;
  }
  return found;
}

double rounding_tolerance(const std::string& precision) {
  if (precision == "fp64") return 1e-8;
  return precision == "fp32" ? 1e-3 : 2e-2;
}

}  // namespace headroom
