// One loader over one datasource, measured from inside: windows a second, processor time, faults, memory, waits.
//
//   ninja -C build/release loader_bench emg_hdf5 && build/release/bench/loader_bench SETTINGS.toml [key=value ...]
//
// SETTINGS.toml has the keys below at top level, with the table [options] of the datasource; `key=value` wins over it
// and is read as TOML (options.path='"/data"'). One JSON object goes to standard output.
//
//   plugin = "build/release/lib/headroom/emg_hdf5.so"   # required
//   split = 0               # of the source, all of its groups
//   batch_size = 16
//   num_workers = 2
//   prefetch_factor = 2
//   prefetch_size = 268435456   # bytes
//   shuffle = "global"      # "grouped", "sequential"
//   runs = 32               # of the grouped order
//   run_length = 2048
//   seed = 0
//   augment = true
//   normalize = "sampled"   # "exact", "off"
//   chunk_cache_size = 33554432   # bytes
//   cache_size = 0          # bytes of samples kept in memory, where the source draws nothing in training
//   cache_policy = "planned"   # "lru"
//   memory_map = false
//   seconds = 3.0           # measured, after warm_up batches
//   most_samples = 0        # end sooner, after so many; 0: by the clock alone
//   warm_up = 64            # batches
//   work_us = 0             # the consumer is busy for so long with every batch
//   measure_waits = true    # of resuming, and at the ends of epochs
//   cold = false            # drop the source's files from the page cache first; no warm-up then

#include "data/loader.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <toml++/toml.h>

#include "arrays/array_session.hpp"
#include "arrays/arrays.hpp"
#include "arrays/chunk_cache.hpp"
#include "arrays/open_files.hpp"
#include "data/cache_session.hpp"
#include "data/data_report.hpp"
#include "data/services.hpp"
#include "memory/descriptor.hpp"
#include "plugins/library.hpp"

namespace headroom {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <class T>
T setting(const toml::table& settings, const char* key, T otherwise) {
  const auto node = settings[key];
  if (!node) return otherwise;
  const auto value = node.value<T>();
  if (!value) throw std::runtime_error(std::string(key) + " has another type than the comment in loader.cpp says");
  return *value;
}

toml::table read_settings(int count, char** arguments) {
  if (count < 2) throw std::runtime_error("usage: loader_bench SETTINGS.toml [key=value ...]");
  toml::table settings = toml::parse_file(arguments[1]);
  for (int i = 2; i < count; ++i) {
    for (auto&& [key, node] : toml::parse(arguments[i])) {
      toml::table* below = node.is_table() ? settings[key].as_table() : nullptr;
      if (below == nullptr) {
        settings.insert_or_assign(key, node);
      } else {
        for (auto&& [inner, value] : *node.as_table()) below->insert_or_assign(inner, value);
      }
    }
  }
  return settings;
}

struct Usage {
  double cpu_seconds = 0;
  long minor_faults = 0, major_faults = 0;
  int64_t peak_rss_bytes = 0;
};

Usage usage() {
  rusage all{};
  getrusage(RUSAGE_SELF, &all);
  const auto seconds = [](const timeval& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); };
  return {seconds(all.ru_utime) + seconds(all.ru_stime), all.ru_minflt, all.ru_majflt, int64_t{all.ru_maxrss} * 1024};
}

// A line of /proc/self/smaps_rollup in bytes.
int64_t rollup(const std::string& key) {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

void drop_from_page_cache(const Source& source) {
  for (const auto& path : source.files()) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) continue;
    fdatasync(file.get());
    posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Shuffle shuffle_of(const std::string& name) {
  if (name == "global") return Shuffle::global;
  if (name == "grouped") return Shuffle::grouped;
  if (name == "sequential") return Shuffle::sequential;
  throw std::runtime_error("shuffle is '" + name + "'; \"global\", \"grouped\" and \"sequential\" are there");
}

CachePolicy policy_of(const std::string& name) {
  if (name == "planned") return CachePolicy::planned;
  if (name == "lru") return CachePolicy::lru;
  throw std::runtime_error("cache_policy is '" + name + "'; \"planned\" and \"lru\" are there");
}

LoaderOptions loader_options(const toml::table& settings, const Source& source) {
  LoaderOptions options;
  options.seed = static_cast<uint64_t>(setting<int64_t>(settings, "seed", 0));
  options.batch_size = setting<int64_t>(settings, "batch_size", 16);
  options.num_workers = static_cast<int>(setting<int64_t>(settings, "num_workers", 2));
  options.prefetch_factor = static_cast<int>(setting<int64_t>(settings, "prefetch_factor", 2));
  options.prefetch_bytes = setting<int64_t>(settings, "prefetch_size", options.prefetch_bytes);
  options.shuffle = shuffle_of(setting<std::string>(settings, "shuffle", "global"));
  options.grouping = {static_cast<uint64_t>(setting<int64_t>(settings, "runs", 32)),
                      static_cast<uint64_t>(setting<int64_t>(settings, "run_length", 2048))};
  options.augment = setting(settings, "augment", true);
  if (setting<int64_t>(settings, "cache_size", 0) > 0 && !source.augments())
    options.keep_samples = policy_of(setting<std::string>(settings, "cache_policy", "planned"));
  return options;
}

class Measurement {
 public:
  explicit Measurement(const toml::table& settings) : settings_(settings), work_us_(setting(settings, "work_us", 0.0)) {
    result_["pss_at_start_bytes"] = rollup("Pss");
    auto start = Clock::now();
    const Library library = Library::load(setting<std::string>(settings, "plugin", ""));
    const OptionTable table = to_option_table(library.datasource()->options);
    source_ = Source::open(library, check_options(table, settings["options"].as_table(), "options", library.id()));
    result_["open_ms"] = 1e3 * seconds_since(start);

    const auto number = static_cast<uint32_t>(setting<int64_t>(settings, "split", 0));
    const Split split(source_->splits().at(number), number, source_->groups(number));
    start = Clock::now();
    Normalizer normalizer =
        Normalizer::measure(*source_, split, setting<std::string>(settings, "normalize", "sampled"), 10'000);
    result_["normalizer_ms"] = 1e3 * seconds_since(start);
    result_["rss_before_loader_bytes"] = rollup("Rss");
    loader_.emplace(source_, split, std::move(normalizer), loader_options(settings, *source_));
    result_["samples_per_epoch"] = loader_->samples_per_epoch();
  }

  nlohmann::json run() {
    const bool cold = setting(settings_, "cold", false);
    result_["loop_began"] = seconds_since({});
    if (cold) drop_from_page_cache(*source_);
    const auto start = Clock::now();
    loader_->seek(0, 0, /*continuous=*/true);
    next();
    result_["first_batch_ms"] = 1e3 * seconds_since(start);
    const int64_t warm_up = cold ? 0 : setting<int64_t>(settings_, "warm_up", 64);
    for (int64_t i = 0; i < warm_up; ++i) next();
    measure_speed();
    result_["loop_ended"] = seconds_since({});
    if (!setting(settings_, "measure_waits", true)) return result_;
    measure_resume();
    measure_boundary();
    return result_;
  }

 private:
  // The samples of the next batch, of the next epoch where this one is over.
  uint64_t next() {
    auto batch = loader_->next();
    if (!batch) batch = loader_->next();
    if (work_us_ > 0) {
      for (const auto start = Clock::now(); 1e6 * seconds_since(start) < work_us_;) continue;
    }
    bytes_ = 0;
    for (const DLTensor& field : batch->fields) {
      uint64_t bytes = field.dtype.bits / 8;
      for (int axis = 0; axis < field.ndim; ++axis) bytes *= static_cast<uint64_t>(field.shape[axis]);
      bytes_ += bytes;
    }
    return batch->count();
  }

  void measure_speed() {
    const double seconds = setting(settings_, "seconds", 3.0);
    const auto most = static_cast<uint64_t>(setting<int64_t>(settings_, "most_samples", 0));
    const Usage before = usage();
    const auto cache_before = ArraySession::of_process()->chunks()->statistics();
    const auto samples_before = CacheSession::of_process()->blocks.statistics();
    const double waited_before = loader_->times().stall;
    const auto start = Clock::now();
    uint64_t samples = 0, batches = 0, bytes = 0;
    while (seconds_since(start) < seconds && (most == 0 || samples < most)) {
      samples += next();
      bytes += bytes_;
      ++batches;
    }
    const double clock = seconds_since(start);
    const Usage after = usage();
    const double cpu = after.cpu_seconds - before.cpu_seconds;
    const auto cache = ArraySession::of_process()->chunks()->statistics();
    result_["samples"] = samples;
    result_["batches"] = batches;
    result_["seconds"] = clock;
    result_["cpu_seconds"] = cpu;
    result_["samples_per_s"] = static_cast<double>(samples) / clock;
    result_["samples_per_cpu_s"] = static_cast<double>(samples) / cpu;
    result_["bytes_per_s"] = static_cast<double>(bytes) / clock;
    result_["minor_faults"] = after.minor_faults - before.minor_faults;
    result_["major_faults"] = after.major_faults - before.major_faults;
    result_["peak_rss_bytes"] = after.peak_rss_bytes;
    result_["rss_bytes"] = rollup("Rss");
    result_["pss_bytes"] = rollup("Pss");
    result_["anonymous_bytes"] = rollup("Anonymous");
    result_["wait_seconds"] = loader_->times().stall - waited_before;
    result_["cache"] = cache_json(CacheSession::of_process()->blocks.statistics());
    result_["cache"]["hits_measured"] = CacheSession::of_process()->blocks.statistics().hits - samples_before.hits;
    result_["cache"]["misses_measured"] =
        CacheSession::of_process()->blocks.statistics().misses - samples_before.misses;
    result_["chunk_cache"] = {{"hits", cache.hits - cache_before.hits},
                              {"misses", cache.misses - cache_before.misses},
                              {"kept_bytes", cache.kept_bytes}};
  }

  // From seek() into the middle of an epoch to the batch.
  void measure_resume() {
    std::vector<double> all;
    const auto size = static_cast<uint64_t>(loader_->batch_size());
    for (uint64_t i = 0; i < 5; ++i) {
      const auto start = Clock::now();
      loader_->seek(i, loader_->batches_per_epoch() / 2 * size, true);
      next();
      all.push_back(1e3 * seconds_since(start));
    }
    result_["resume_ms"] = median(all);
  }

  // The wait for the first batch of an epoch, and for those before it, of a consumer that leaves time to read ahead.
  void measure_boundary() {
    std::vector<double> boundary, inside;
    const auto size = static_cast<uint64_t>(loader_->batch_size());
    const uint64_t batches = loader_->batches_per_epoch(), from = batches - std::min<uint64_t>(batches, 20);
    for (uint64_t epoch = 0; epoch < 5; ++epoch) {
      loader_->seek(epoch, from * size, true);
      for (uint64_t i = from; i < batches; ++i) {
        const auto start = Clock::now();
        loader_->next();
        if (i > from) inside.push_back(1e3 * seconds_since(start));
        for (const auto busy = Clock::now(); seconds_since(busy) < 2e-3;) continue;
      }
      const auto start = Clock::now();
      next();
      boundary.push_back(1e3 * seconds_since(start));
    }
    result_["epoch_boundary_ms"] = median(boundary);
    result_["inside_epoch_ms"] = median(inside);
  }

  const toml::table& settings_;
  double work_us_;
  std::shared_ptr<const Source> source_;
  std::optional<Loader> loader_;
  nlohmann::json result_;
  uint64_t bytes_ = 0;  // of the last batch
};

}  // namespace
}  // namespace headroom

int main(int argument_count, char** arguments) {
  using namespace headroom;
  try {
    const toml::table settings = read_settings(argument_count, arguments);
    register_data_services();
    ArraySession::of_process()->map_files(setting(settings, "memory_map", false));
    ArraySession::of_process()->set_chunk_cache_limit(setting<int64_t>(settings, "chunk_cache_size", 32 << 20));
    CacheSession::of_process()->blocks.set_limit(static_cast<uint64_t>(setting<int64_t>(settings, "cache_size", 0)));
    CacheSession::of_process()->plugin_policy = policy_of(setting<std::string>(settings, "cache_policy", "planned"));
    std::cout << Measurement(settings).run().dump() << "\n";
  } catch (const std::exception& problem) {
    std::cerr << problem.what() << "\n";
    return 1;
  }
  return 0;
}
