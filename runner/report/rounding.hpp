// Runs of one identity have the same mathematics: what their results may differ by.
#pragma once

#include <string>

namespace headroom {

// Relative; what rounding becomes when training carries it on, by train.precision.
double rounding_tolerance(const std::string& precision);

// |a - b| against the larger; 0 for two NaN, infinite for one.
double relative_difference(double a, double b);

}  // namespace headroom
