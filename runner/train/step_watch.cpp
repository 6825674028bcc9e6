#include "train/step_watch.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <vector>

#include "memory/tensor_allocator.hpp"

namespace headroom {

namespace {

double milliseconds(const timeval& time) {
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
}

}  // namespace

StepMeter::Reading StepMeter::read() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {.ms = std::chrono::duration<double, std::milli>(now).count(),
          .cpu_ms = milliseconds(used.ru_utime) + milliseconds(used.ru_stime),
          .minor_faults = used.ru_minflt,
          .tensor_allocations = headroom::tensor_allocations()};
}

void StepMeter::begin() { begun_ = read(); }

void StepMeter::end() {
  const Reading now = read();
  windows_[count_++ % most_windows] = {.ms = now.ms - begun_.ms,
                                       .cpu_ms = now.cpu_ms - begun_.cpu_ms,
                                       .minor_faults = now.minor_faults - begun_.minor_faults,
                                       .tensor_allocations = now.tensor_allocations - begun_.tensor_allocations};
}

nlohmann::json StepMeter::json() const {
  // The order in the ring does not matter to a median.
  const size_t windows = std::min(count_, most_windows);
  nlohmann::json json = {{"windows", windows}};
  if (windows == 0) return json;
  const auto median = [&](auto Reading::*value) {
    std::vector<Reading> sorted(windows_.begin(), windows_.begin() + static_cast<std::ptrdiff_t>(windows));
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(windows / 2);
    std::ranges::nth_element(sorted, middle, {}, value);
    return (*middle).*value;
  };
  json["median_ms"] = median(&Reading::ms);
  json["median_cpu_ms"] = median(&Reading::cpu_ms);
  json["median_minor_faults"] = median(&Reading::minor_faults);
  json["median_tensor_allocations"] = median(&Reading::tensor_allocations);
  return json;
}

}  // namespace headroom
