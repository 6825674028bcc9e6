#include "report/pareto.hpp"

#include <algorithm>
#include <numeric>

namespace headroom {

std::vector<size_t> pareto_front(const std::vector<ParetoPoint>& points, bool lower_wins) {
  const auto better = [&](double a, double b) { return lower_wins ? a < b : a > b; };
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (points[a].cost != points[b].cost) return points[a].cost < points[b].cost;
    return better(points[a].value, points[b].value);
  });
  std::vector<size_t> front;
  for (const size_t number : order) {
    if (front.empty() || better(points[number].value, points[front.back()].value)) front.push_back(number);
  }
  return front;
}

}  // namespace headroom
