// Which trials nobody beats: less memory for at least the same result.
#pragma once

#include <string>
#include <vector>

namespace headroom {

struct ParetoPoint {
  double cost = 0, value = 0;
};

// Numbers of the points on the front, by rising cost. A point is on it when no other costs at most as much and is
// better, or costs less and is as good.
std::vector<size_t> pareto_front(const std::vector<ParetoPoint>& points, bool lower_wins);

}  // namespace headroom
