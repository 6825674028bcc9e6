// What the ledger, the monitor and the black box cost each time, in CPU nanoseconds: printed as JSON for cost.py, which
// multiplies by how often a step asks. Rounds are interleaved and medians taken.
#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "memory/allocation_table.hpp"
#include "memory/arena.hpp"
#include "memory/black_box.hpp"
#include "memory/ledger.hpp"
#include "memory/monitor.hpp"

namespace headroom {
namespace {

constexpr int rounds = 15;
constexpr std::array<size_t, 8> sizes = {64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};

double cpu_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// One allocation and its release, as a step does them: a few hundred are alive at a time.
template <class Allocate, class Release>
double pair_ns(Allocate allocate, Release release) {
  constexpr int alive = 256, passes = 400;
  std::array<void*, alive> held{};
  const double start = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
  for (int pass = 0; pass < passes; ++pass) {
    for (int i = 0; i < alive; ++i)
      held[static_cast<size_t>(i)] = allocate(sizes[static_cast<size_t>(i) % sizes.size()]);
    for (void* data : held) release(data);
  }
  return (cpu_ns(CLOCK_THREAD_CPUTIME_ID) - start) / (alive * passes);
}

void* allocate_on_ledger(AllocationTable& table, size_t bytes) {
  void* data = arena::allocate(bytes);
  const auto usable = static_cast<int64_t>(arena::occupied_bytes(data, bytes));
  table.insert(data, static_cast<uint64_t>(usable), current_owner());
  account(current_owner(), usable);
  return data;
}

void release_on_ledger(AllocationTable& table, void* data) {
  const AllocationTable::Entry entry = table.take(data);
  account(static_cast<Owner>(entry.owner), -static_cast<int64_t>(entry.bytes));
  arena::release(data);
}

double event_ns(BlackBox& box) {
  constexpr int events = 200'000;
  const double start = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < events; ++i) box.set_phase(i % 2 == 0 ? Phase::forward : Phase::loading);
  return (cpu_ns(CLOCK_THREAD_CPUTIME_ID) - start) / events;
}

// A look of the monitor, the black box's record included: what the process's other thread burns while this one sleeps.
double look_ns(BlackBox& box) {
  const double start = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  Monitor monitor(0, std::chrono::milliseconds(1));
  monitor.fill(box);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / static_cast<double>(std::max<int64_t>(monitor.looks(), 1));
}

int measure(const std::filesystem::path& folder) {
  AllocationTable table;
  BlackBox box(folder / black_box_file);
  std::vector<double> plain, on_ledger, event, look;
  for (int round = 0; round < rounds; ++round) {
    plain.push_back(pair_ns([](size_t bytes) { return arena::allocate(bytes); }, &arena::release));
    on_ledger.push_back(pair_ns([&](size_t bytes) { return allocate_on_ledger(table, bytes); },
                                [&](void* data) { release_on_ledger(table, data); }));
    event.push_back(event_ns(box));
    look.push_back(look_ns(box));
  }
  std::cout << nlohmann::json{{"allocation_ns", median(plain)},
                              {"allocation_on_ledger_ns", median(on_ledger)},
                              {"event_ns", median(event)},
                              {"look_ns", median(look)}}
            << "\n";
  return 0;
}

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: bench_memory_cost FOLDER\n";
    return 2;
  }
  return headroom::measure(argv[1]);
}
