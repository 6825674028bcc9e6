#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>

#include "report/plot_frame.hpp"
#include "report/sweep_report.hpp"

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
    // Costs rise from here on: who is better than the last of the front is beaten by nobody.
    if (front.empty() || better(points[number].value, points[front.back()].value)) front.push_back(number);
  }
  return front;
}

namespace {

constexpr const char *batch_key = "train.batch_size", *accumulation_key = "train.gradient_accumulation_steps";

// Of batches of 64 in 4 GB, trained as 16 x 4 in 1 GB.
constexpr int64_t guides_ratio = 4;
constexpr const char* guides_figures = "25 % memory, 85 % speed";

// 0 where it is not set or no number: such trials are left out.
int64_t batch_of(const SweptTrial& trial) { return std::atoll(trial.setting(batch_key).c_str()); }

std::string name_of(const SweptTrial& trial) {
  const std::string accumulation = trial.setting(accumulation_key);
  return trial.setting(batch_key) + (accumulation.empty() ? "" : " x " + accumulation);
}

std::string share(double value, double of) {
  return of > 0 ? amount_text(std::round(100 * value / of), Quantity::number) + " %" : "";
}

// Largest batch first, one trial a batch size.
using Group = std::map<int64_t, const SweptTrial*, std::greater<>>;

std::string table_of(const Group& group) {
  const SweptTrial& whole = *group.begin()->second;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [batch, trial] : group) {
    const double peak = *trial->peak_bytes, speed = *trial->samples_per_second;
    rows.push_back({name_of(*trial), amount_text(peak, Quantity::bytes), share(peak, *whole.peak_bytes),
                    amount_text(speed, Quantity::number), share(speed, *whole.samples_per_second),
                    batch * guides_ratio == group.begin()->first ? guides_figures : ""});
  }
  const std::string of = "of " + name_of(whole);
  return table_html({"batch x accumulation", "peak memory", of, "samples/s", of, "the guides"}, rows);
}

}  // namespace

std::string trade_off(const SweepReading& sweep) {
  std::map<std::string, Group> groups;
  for (const SweptTrial& trial : sweep.trials) {
    const bool ran = trial.state == "finished" && trial.peak_bytes && trial.samples_per_second;
    // Of trials with one batch size the first stands for the others.
    if (ran && !trial.identity.empty() && batch_of(trial) > 0) groups[trial.identity].emplace(batch_of(trial), &trial);
  }
  std::string html;
  for (const auto& [identity, group] : groups) {
    if (group.size() > 1) html += table_of(group);
  }
  if (html.empty()) return "";
  return "<p>The same mathematics in smaller batches. The guides have batches of 64 in 4 GB, and 16 x 4 in 1 GB at 85 "
         "% of the "
         "speed.</p>\n" +
         html;
}

}  // namespace headroom
