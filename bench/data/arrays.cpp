// Windows a second out of HDF5, by the clock and by processor time: what headroom.arrays/1 alone costs, in EMG's
// layout.
//
//   ninja -C build/release arrays_bench && build/release/bench/arrays_bench [WINDOWS [FOLDER]]
//
// FOLDER (default: a temporary one) gets 16 sessions of 105 000 records {time f8, joint_angles f4[20], emg f4[16]},
// contiguous and in gzip chunks of 206 records; they stay in the page cache. A window is 500 records, both members
// as float32 where they go. H5Dread is the lane of what cannot be read directly, here of the same values behind a link.
// Medians of 5 rounds of WINDOWS windows (20 000; global order in gzip and all of H5Dread's: a tenth of them in gzip);
// in brackets the slowest and the fastest.

#include "arrays/arrays.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

#include "arrays/array_session.hpp"
#include "arrays/hdf5.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t sessions = 16, records = 105'000, window = 500;
constexpr int rounds = 5;

struct Record {
  double time;
  float angles[20];
  float emg[16];
};
static_assert(sizeof(Record) == 152);

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void write_session(const fs::path& path, uint64_t seed, int deflate) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> noise(0.0f, 1.0f);
  std::vector<Record> all(records);
  for (uint64_t i = 0; i < records; ++i) {
    all[i].time = static_cast<double>(i) / 2000.0;
    for (int j = 0; j < 20; ++j) all[i].angles[j] = static_cast<float>(std::sin(0.001 * static_cast<double>(i) + j));
    for (float& value : all[i].emg) value = std::round(20.0f * noise(random)) / 16.0f;  // as an ADC gives it
  }
  const hsize_t count = records, chunk = 206, twenty = 20, sixteen = 16;
  const Hdf5Lock lock;
  const Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  const Handle angles(H5Tarray_create2(H5T_IEEE_F32LE, 1, &twenty)), emg(H5Tarray_create2(H5T_IEEE_F32LE, 1, &sixteen));
  const Handle type(H5Tcreate(H5T_COMPOUND, sizeof(Record))), storage(H5Pcreate(H5P_DATASET_CREATE));
  H5Tinsert(type.get(), "time", 0, H5T_IEEE_F64LE);
  H5Tinsert(type.get(), "joint_angles", 8, angles.get());
  H5Tinsert(type.get(), "emg", 88, emg.get());
  if (deflate > 0) H5Pset_chunk(storage.get(), 1, &chunk);
  if (deflate > 0) H5Pset_deflate(storage.get(), static_cast<unsigned>(deflate));
  const Handle space(H5Screate_simple(1, &count, nullptr));
  const Handle dataset(H5Dcreate2(file.get(), "t", type.get(), space.get(), H5P_DEFAULT, storage.get(), H5P_DEFAULT));
  if (H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()) < 0) std::exit(1);
}

// A link into another file: the same bytes, which the arrays service then reads through H5Dread.
void write_link(const fs::path& path, const fs::path& target) {
  const Hdf5Lock lock;
  const Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  H5Lcreate_external(target.c_str(), "/t", file.get(), "t", H5P_DEFAULT, H5P_DEFAULT);
}

struct Speed {
  double by_clock = 0, by_cpu = 0;
};

// `grouped`: neighbours in runs of 200 windows, as the loader's grouped order has them.
Speed measure(const std::vector<hr_array*>& arrays, int threads, bool grouped, uint64_t windows, int round) {
  const double clock = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  std::vector<std::thread> readers;
  for (int t = 0; t < threads; ++t) {
    readers.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<uint64_t>(16 * round + t));
      std::vector<float> emg(window * 16), angles(window * 20);
      uint64_t session = 0, start = 0;
      for (uint64_t i = 0; i < windows / static_cast<uint64_t>(threads); ++i) {
        const bool jump = !grouped || i % 200 == 0;
        session = jump ? random() % sessions : session;
        start = jump ? random() % (records - window - 200) : start + 1;
        const uint64_t count = window;
        const hr_array_target targets[] = {{2, {kDLFloat, 32, 1}, emg.data(), 0},
                                           {1, {kDLFloat, 32, 1}, angles.data(), 0}};
        if (arrays_service().read_box(arrays[session], &start, &count, targets, 2, nullptr) != HR_OK) std::exit(1);
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  const auto done = static_cast<double>(windows);
  return {done / (seconds(CLOCK_MONOTONIC) - clock), done / (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu)};
}

std::string summary(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  char text[80];
  std::snprintf(text, sizeof text, "%9.0f [%.0f, %.0f]", values[values.size() / 2], values.front(), values.back());
  return text;
}

void compare(const std::string& name, const std::vector<fs::path>& paths, uint64_t global_windows,
             uint64_t grouped_windows) {
  std::vector<hr_array*> arrays(sessions);
  const double start = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (uint64_t s = 0; s < sessions; ++s) {
    if (arrays_service().open(nullptr, paths[s].c_str(), "t", &arrays[s], nullptr) != HR_OK) std::exit(1);
  }
  std::printf("%s: opening %.2f ms a session, %.2f ms of them ours\n", name.c_str(),
              1e3 * (seconds(CLOCK_MONOTONIC) - start) / sessions,
              1e3 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / sessions);
  for (const bool grouped : {false, true}) {
    for (const int threads : {1, 2}) {
      std::vector<double> by_clock, by_cpu;
      for (int round = 0; round < rounds; ++round) {
        const Speed speed = measure(arrays, threads, grouped, grouped ? grouped_windows : global_windows, round);
        by_clock.push_back(speed.by_clock);
        by_cpu.push_back(speed.by_cpu);
      }
      std::printf("  %-7s %d threads: %s windows/s, %s per CPU second\n", grouped ? "grouped" : "global", threads,
                  summary(by_clock).c_str(), summary(by_cpu).c_str());
    }
  }
  for (hr_array* array : arrays) arrays_service().close(array);
}

int run(const fs::path& folder, uint64_t windows) {
  fs::create_directories(folder);
  for (const int deflate : {0, 4}) {
    std::vector<fs::path> direct, linked;
    for (uint64_t s = 0; s < sessions; ++s) {
      const std::string name = (deflate > 0 ? "gzip" : "plain") + std::to_string(s) + ".h5";
      direct.push_back(folder / name);
      linked.push_back(folder / ("linked_" + name));
      if (!fs::exists(direct.back())) write_session(direct.back(), s, deflate);
      write_link(linked.back(), direct.back());
    }
    const uint64_t global = deflate > 0 ? windows / 10 : windows;
    const std::string layout = deflate > 0 ? "gzip, chunks of 206" : "contiguous";
    compare(layout + ", H5Dread", linked, global, global);
    compare(layout, direct, global, windows);
  }
  return 0;
}

}  // namespace
}  // namespace headroom

int main(int argument_count, char** arguments) {
  namespace fs = std::filesystem;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  headroom::ArraySession::of_process()->set_chunk_cache_limit(64 << 20);
  const uint64_t windows = argument_count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 20'000;
  if (argument_count > 2) return headroom::run(arguments[2], windows);
  const fs::path folder = fs::temp_directory_path() / ("arrays_bench." + std::to_string(getpid()));
  const int status = headroom::run(folder, windows);
  fs::remove_all(folder);
  return status;
}
