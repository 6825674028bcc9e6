#include <algorithm>
#include <numeric>

#include "memory/watch.hpp"

namespace headroom {

namespace {

constexpr size_t most_at_once = 32;    // processes kept apart in one sample
constexpr size_t most_series = 256;    // and in all
constexpr size_t most_samples = 1200;  // of which
constexpr size_t recent_samples = 300;
constexpr int64_t window_ms = 60'000;  // how far back growth is looked for

}  // namespace

int64_t TimelineSample::bytes_of(uint32_t wanted) const {
  for (const auto& [number, held] : bytes) {
    if (number == wanted) return held;
  }
  return 0;
}

void Timeline::add(int64_t time_ms, const std::vector<WatchedProcess>& processes, const MemoryAround& around) {
  std::vector<const WatchedProcess*> order;
  for (const WatchedProcess& process : processes) order.push_back(&process);
  // The largest first: those beyond most_at_once are the smallest.
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
  TimelineSample sample{
      .time_ms = time_ms, .total_bytes = 0, .processes = static_cast<uint32_t>(processes.size()), .around = around};
  std::map<int64_t, uint32_t> present;
  int64_t others = 0;
  for (const WatchedProcess* process : order) {
    sample.total_bytes += process->bytes;
    if (sample.bytes.size() >= most_at_once) {
      others += process->bytes;
      continue;
    }
    const uint32_t number = number_of(*process, time_ms);
    sample.bytes.emplace_back(number, process->bytes);
    present[process->pid] = number;
  }
  if (others > 0) sample.bytes.emplace_back(0, others);
  // Whoever has no place in this sample loses its number: an id that comes back may be another process.
  by_pid_ = std::move(present);
  if (sample.total_bytes > peak_bytes_) peak_bytes_ = sample.total_bytes, peak_ms_ = time_ms;
  samples_.push_back(std::move(sample));
  if (series_.size() > most_series) forget_small();
  if (samples_.size() > most_samples) thin_out();
}

uint32_t Timeline::number_of(const WatchedProcess& process, int64_t time_ms) {
  const auto known = by_pid_.find(process.pid);
  const auto number = known != by_pid_.end() ? known->second : static_cast<uint32_t>(series_.size());
  if (number == series_.size()) series_.push_back({.pid = process.pid, .parent = process.parent, .first_ms = time_ms});
  ProcessSeries& series = series_[number];
  series.name = process.name;
  series.command = process.command;
  series.last_ms = time_ms;
  series.last_bytes = process.bytes;
  series.peak_bytes = std::max(series.peak_bytes, process.bytes);
  series.by_rss |= process.by_rss;
  return number;
}

void Timeline::forget_use() {
  for (TimelineSample& sample : samples_)
    sample.around.used_bytes = sample.around.others_bytes = sample.around.files_bytes = 0;
}

// The half with the smallest peaks becomes "others", as far as they are not there any more.
void Timeline::forget_small() {
  const std::vector<uint32_t> order = largest(series_.size());
  std::vector<bool> keep(series_.size(), false);
  keep[0] = true;
  for (size_t i = 0; i < order.size() / 2; ++i) keep[order[i]] = true;
  for (const auto& [pid, number] : by_pid_) keep[number] = true;
  // 0 for a series that is not kept: it becomes a part of the others.
  std::vector<uint32_t> renumbered(series_.size(), 0);
  std::vector<ProcessSeries> kept;
  for (uint32_t number = 0; number < series_.size(); ++number) {
    if (!keep[number]) continue;
    renumbered[number] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(series_[number]));
  }
  series_ = std::move(kept);
  for (auto& [pid, number] : by_pid_) number = renumbered[number];
  for (TimelineSample& sample : samples_) {
    int64_t others = 0;
    for (auto& [number, bytes] : sample.bytes) {
      number = renumbered[number];
      if (number == 0) others += bytes;
    }
    std::erase_if(sample.bytes, [](const auto& entry) { return entry.first == 0; });
    if (others > 0) sample.bytes.emplace_back(0, others);
  }
}

void Timeline::thin_out() {
  const size_t old = samples_.size() - recent_samples;
  std::vector<TimelineSample> kept;
  for (size_t i = 0; i + 1 < old; i += 2) {
    // The larger of two stays, so that the peak does.
    const bool second = samples_[i + 1].total_bytes > samples_[i].total_bytes;
    kept.push_back(std::move(samples_[second ? i + 1 : i]));
  }
  if (old % 2 == 1) kept.push_back(std::move(samples_[old - 1]));
  std::move(samples_.begin() + static_cast<std::ptrdiff_t>(old), samples_.end(), std::back_inserter(kept));
  samples_ = std::move(kept);
}

const ProcessSeries* Timeline::find(int64_t pid) const {
  // The last one, because ids are used again.
  const auto last =
      std::find_if(series_.rbegin(), series_.rend(), [&](const ProcessSeries& series) { return series.pid == pid; });
  return last == series_.rend() || pid == 0 ? nullptr : &*last;
}

// The end only where there are no samples: the last one always is recent enough.
Timeline::Samples::const_iterator Timeline::since(int64_t ms_back) const {
  return std::ranges::find_if(
      samples_, [&](const TimelineSample& sample) { return sample.time_ms >= samples_.back().time_ms - ms_back; });
}

Timeline::Around Timeline::around() const {
  // What lies before a forget_use() is not known.
  const auto first = std::find_if(since(window_ms), samples_.end(),
                                  [](const TimelineSample& sample) { return sample.around.used_bytes > 0; });
  if (first == samples_.end()) return {};
  const auto last = std::max_element(std::max(first, since(1000)), samples_.end(), [](const auto& a, const auto& b) {
    return a.around.beside_bytes() < b.around.beside_bytes();
  });
  return {first->around, last->around, static_cast<double>(last->time_ms - first->time_ms) / 1000.0};
}

std::optional<Timeline::Growth> Timeline::growth() const {
  if (samples_.empty()) return std::nullopt;
  const TimelineSample& last = samples_.back();
  const auto first = since(window_ms);
  Growth most;
  most.seconds = static_cast<double>(last.time_ms - first->time_ms) / 1000.0;
  for (const auto& [number, bytes] : last.bytes) {
    const int64_t before = first->bytes_of(number);
    // The others are no single process.
    if (number == 0 || bytes - before <= most.after_bytes - most.before_bytes) continue;
    most.series = number, most.before_bytes = before, most.after_bytes = bytes;
  }
  if (most.series == 0) return std::nullopt;
  return most;
}

std::vector<uint32_t> Timeline::largest(size_t count) const {
  std::vector<uint32_t> order(series_.size() - 1);
  std::iota(order.begin(), order.end(), 1);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return series_[a].peak_bytes > series_[b].peak_bytes; });
  if (order.size() > count) order.resize(count);
  return order;
}

}  // namespace headroom
