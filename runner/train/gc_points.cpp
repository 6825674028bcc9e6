#include "train/gc_points.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "memory/ledger.hpp"
#include "memory/process_memory.hpp"
#include "memory/readable.hpp"
#include "memory/tensor_allocator.hpp"

namespace headroom {

GcPoints::GcPoints(const MemorySection& section, Model& model, const Source& source, at::Device device, Report report)
    : section_(section), model_(model), source_(source), device_(device), report_(std::move(report)) {
  // The file was checked: anything else is a number.
  if (section.gc_every != "epoch" && section.gc_every != "pressure") gc_steps_ = std::stoll(section.gc_every);
}

void GcPoints::train_batch_done() {
  if (section_.empty_cache_every > 0 && ++train_batches_ % section_.empty_cache_every == 0) flush();
}

void GcPoints::eval_batch_done() {
  if (section_.empty_cache_every_eval > 0 && ++eval_batches_ % section_.empty_cache_every_eval == 0) flush();
}

void GcPoints::step_done(int64_t step) {
  if (gc_steps_ > 0 && step % gc_steps_ == 0) collect(HR_TRIM_CACHES);
}

void GcPoints::epoch_done() {
  if (section_.gc_every == "epoch") collect(HR_TRIM_CACHES);
}

void GcPoints::pressure() {
  const auto now = std::chrono::steady_clock::now();
  if (section_.gc_every != "pressure" || now - last_pressure_ < std::chrono::seconds(1)) return;
  last_pressure_ = now;
  // When memory is short, plugins also free what takes time to make again.
  collect(HR_TRIM_ALL);
}

void GcPoints::run(Tally& tally, const std::function<int64_t()>& give_back) {
  read_ledger();  // the peak is on record before it goes
  const auto start = std::chrono::steady_clock::now();
  const int64_t returned_bytes = give_back();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  tally.returned_bytes += returned_bytes;
  tally.seconds += seconds;
  ++tally.count;
  report_(tally.what, returned_bytes, seconds);
}

void GcPoints::flush() {
  run(flushes_, [this] { return purge_tensor_memory(device_); });
}

void GcPoints::collect(int level) {
  run(collections_, [this, level] {
    // Only the memory that the process holds shows what plugins and the heap freed.
    const int64_t before = own_held_bytes();
    model_.trim(level);
    source_.trim(level);
    purge_tensor_memory(at::kCPU);
    purge_heap();
    const int64_t returned = before - own_held_bytes();
    // Memory of a device is not the process's, so it is counted apart.
    return returned + (device_.is_cpu() ? 0 : purge_tensor_memory(device_));
  });
}

std::string GcPoints::summary() const {
  const auto tally = [](const Tally& t, const char* what) {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.2f s, ", t.seconds);
    return std::to_string(t.count) + " " + what + " (" + seconds + size_text(t.returned_bytes) + ")";
  };
  return tally(flushes_, "flushes") + ", " + tally(collections_, "gc points");
}

nlohmann::json GcPoints::json() const {
  const auto tally = [](const Tally& t) {
    return nlohmann::json{{"count", t.count}, {"seconds", t.seconds}, {"returned_bytes", t.returned_bytes}};
  };
  return {{"empty_cache", tally(flushes_)}, {"gc", tally(collections_)}};
}

}  // namespace headroom
