// What this machine can do at most: random blocks copied in memory, read from the page cache or from the disk into
// memory that is used again, and stored chunks inflated.
//
//   ceiling_bench BLOCK_BYTES THREADS SECONDS BLOCKS DATASET|- FILE...
//
// BLOCKS: 0 for as many as the time allows; else the files are dropped from the page cache and so many are read.
// One JSON object: bytes a second by memcpy and by pread, chunks of DATASET a second and a CPU second.

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sys/resource.h>
#include <thread>

#include "arrays/filters.hpp"
#include "arrays/hdf5_array.hpp"

namespace headroom {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  uint64_t block_bytes;
  int threads;
  double seconds;
  int64_t cold_blocks;
  std::string dataset;
  std::vector<std::string> files;
};

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return double(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * double(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

struct Rate {
  double per_s = 0, per_cpu_s = 0;
};

// `make(thread)` gives what the thread repeats until the time is over; each call returns what it has done.
Rate measure(const Settings& settings, const std::function<std::function<uint64_t()>(int)>& make) {
  std::vector<uint64_t> done(static_cast<size_t>(settings.threads));
  std::vector<std::function<uint64_t()>> work;
  for (int i = 0; i < settings.threads; ++i) {
    work.push_back(make(i));
    if (settings.cold_blocks == 0) work.back()();  // its buffers exist
  }
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings.seconds));
  std::atomic<int64_t> left = settings.cold_blocks > 0 ? settings.cold_blocks : std::numeric_limits<int64_t>::max();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < work.size(); ++i) {
    threads.emplace_back([&, i] {
      while (Clock::now() < end && left-- > 0) done[i] += work[i]();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  double all = 0;
  for (const uint64_t count : done) all += static_cast<double>(count);
  return {all / seconds, all / (cpu_seconds() - cpu)};
}

Rate measure_memcpy(const Settings& settings) {
  const uint64_t source_bytes = std::max<uint64_t>(256 << 20, settings.block_bytes);
  const auto source = std::make_shared<std::vector<char>>(source_bytes, 'x');
  return measure(settings, [&](int thread) {
    auto to = std::make_shared<std::vector<char>>(settings.block_bytes);
    return [=, random = std::mt19937_64(static_cast<unsigned>(thread)), bytes = settings.block_bytes]() mutable {
      std::memcpy(to->data(), source->data() + random() % (source_bytes - bytes + 1), bytes);
      return bytes;
    };
  });
}

Rate measure_pread(const Settings& settings) {
  struct Open {
    explicit Open(int number) : file(number) {}
    Descriptor file;
    uint64_t bytes = 0;
  };
  auto files = std::make_shared<std::deque<Open>>();
  for (const std::string& path : settings.files) {
    const int file = files->emplace_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC)).file.get();
    files->back().bytes = static_cast<uint64_t>(::lseek(file, 0, SEEK_END));
    if (settings.cold_blocks == 0) continue;
    ::fdatasync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  }
  return measure(settings, [&](int thread) {
    auto to = std::make_shared<std::vector<char>>(settings.block_bytes);
    return [=, random = std::mt19937_64(static_cast<unsigned>(thread)), most = settings.block_bytes]() mutable {
      const Open& file = (*files)[random() % files->size()];
      const uint64_t bytes = std::min(most, file.bytes);
      read_exactly(file.file.get(), random() % (file.bytes - bytes + 1), to->data(), bytes);
      return bytes;
    };
  });
}

Rate measure_inflate(const Settings& settings) {
  auto array = std::make_shared<Hdf5Array>(settings.files.front(), settings.dataset);
  auto file = std::make_shared<Descriptor>(::open(settings.files.front().c_str(), O_RDONLY | O_CLOEXEC));
  return measure(settings, [&](int thread) {
    auto stored = std::make_shared<std::vector<std::byte>>();
    auto chunk = std::make_shared<std::vector<std::byte>>(array->layout().chunk_bytes());
    return [=, random = std::mt19937_64(static_cast<unsigned>(thread))]() mutable {
      const ArrayPlan& plan = array->plan();
      const StoredChunk& place = plan.chunks[random() % plan.chunks.size()];
      stored->resize(place.bytes);
      read_exactly(file->get(), place.offset, stored->data(), place.bytes);
      decode_chunk(plan.filters, place.filter_mask, *stored, *chunk);
      return uint64_t{1};
    };
  });
}

}  // namespace
}  // namespace headroom

int main(int argument_count, char** arguments) {
  using namespace headroom;
  if (argument_count < 7) {
    std::cerr << "usage: ceiling_bench BLOCK_BYTES THREADS SECONDS BLOCKS DATASET|- FILE...\n";
    return 2;
  }
  try {
    const Settings settings{std::stoull(arguments[1]),
                            std::stoi(arguments[2]),
                            std::stod(arguments[3]),
                            std::stoll(arguments[4]),
                            arguments[5],
                            {arguments + 6, arguments + argument_count}};
    nlohmann::json result{{"pread_bytes_per_s", measure_pread(settings).per_s}};
    if (settings.cold_blocks == 0) result["memcpy_bytes_per_s"] = measure_memcpy(settings).per_s;
    if (settings.dataset != "-") {
      const Rate chunks = measure_inflate(settings);
      result["chunks_per_s"] = chunks.per_s;
      result["chunks_per_cpu_s"] = chunks.per_cpu_s;
    }
    std::cout << result.dump() << "\n";
  } catch (const std::exception& problem) {
    std::cerr << problem.what() << "\n";
    return 1;
  }
}
