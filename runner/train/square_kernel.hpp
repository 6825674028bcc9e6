// Sums of squares in float64 of values as they lie in memory, in one pass and without a copy. Without LibTorch, for
// several instruction sets (sdk/cpu_kernel.hpp); the order of the additions is the same in all of them. [any]
#pragma once

#include <cstdint>

namespace headroom {

double sum_of_squares(const float* values, int64_t count);
double sum_of_squares(const double* values, int64_t count);

// Divides the values in place, in their own type; the sum is of what comes out.
double divide_and_sum_squares(float* values, int64_t count, double divisor);
double divide_and_sum_squares(double* values, int64_t count, double divisor);

}  // namespace headroom
