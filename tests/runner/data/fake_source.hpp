// A datasource made of arithmetic, for what stands above sources: groups, splits, orders, loaders, normalisers.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "headroom/random.h"
#include "headroom/sdk/error.hpp"
#include "plugins/source.hpp"

namespace headroom {

struct FakeSplit {
  std::string name;
  std::vector<uint64_t> groups;  // samples of each
};

struct FakeData {
  std::vector<FakeSplit> splits{{"all", {10, 20, 30, 40}}};
  std::vector<std::string> files;
  int64_t channels = 3;
  DLDataType dtype{kDLFloat, 32, 1};              // of field "x"
  std::set<uint64_t> corrupt, io_error, refused;  // samples whose read fails
  std::set<uint64_t> corrupt_in_company;          // ... only together with others
  std::set<uint64_t> not_a_number;
  std::function<double(uint64_t index, int64_t time, int64_t channel)> value;  // of x; unset: see fake_value()
  std::function<void()> during_read;                                           // before the samples of a read
  bool keyless = false;  // what it says of itself; field "draw" differs all the same
  int delay_us = 0;      // at most, different each time
  std::atomic<int> readers_open{0}, readers_opened{0}, reads{0};
  std::atomic<int> in_flight{0};             // reads under way
  std::atomic<int> trims{0}, busy_trims{0};  // trim_source calls, and those that met a read
};

constexpr int64_t fake_times = 4;

inline double fake_value(uint64_t index, int64_t time, int64_t channel) {
  return static_cast<double>(index) + 0.1 * static_cast<double>(time) + 100.0 * static_cast<double>(channel);
}

namespace fake {

inline FakeData& data_of(const void* handle) { return *static_cast<FakeData*>(const_cast<void*>(handle)); }

inline hr_status open(const hr_host*, const hr_value* options, hr_source** out, hr_error*) noexcept {
  *out = reinterpret_cast<hr_source*>(const_cast<char*>(options->as.string));
  return HR_OK;
}
inline void close(hr_source*) noexcept {}
inline uint32_t field_count(const hr_source*) noexcept { return 3; }

// x [4, channels] standardised, label [] int64, draw [] float64: the sample's first uniform number where augmented,
// else -1.
inline hr_status field(const hr_source* source, uint32_t i, hr_field* out, hr_error*) noexcept {
  const FakeData& data = data_of(source);
  *out = {};
  out->struct_size = sizeof *out;
  out->name = i == 0 ? "x" : i == 1 ? "label" : "draw";
  out->dtype = i == 0 ? data.dtype : i == 1 ? DLDataType{kDLInt, 64, 1} : DLDataType{kDLFloat, 64, 1};
  out->channel_axis = -1;
  if (i == 0) {
    out->flags = HR_FIELD_NORMALIZE;
    out->ndim = 2;
    out->shape[0] = fake_times;
    out->shape[1] = data.channels;
    out->channel_axis = 1;
  }
  return HR_OK;
}
inline uint32_t split_count(const hr_source* source) noexcept {
  return static_cast<uint32_t>(data_of(source).splits.size());
}
inline const char* split(const hr_source* source, uint32_t i) noexcept {
  return data_of(source).splits[i].name.c_str();
}
inline uint64_t length(const hr_source* source, uint32_t split) noexcept {
  uint64_t total = 0;
  for (const uint64_t count : data_of(source).splits[split].groups) total += count;
  return total;
}
inline uint64_t group_count(const hr_source* source, uint32_t split) noexcept {
  return data_of(source).splits[split].groups.size();
}
inline hr_status group(const hr_source* source, uint32_t split, uint64_t i, hr_group* out, hr_error*) noexcept {
  static const char* const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  const auto& groups = data_of(source).splits[split].groups;
  uint64_t first = 0;
  for (uint64_t g = 0; g < i; ++g) first += groups[g];
  *out = {sizeof(hr_group), 0, names[i % 10], first, groups[i]};
  return HR_OK;
}
inline uint64_t file_count(const hr_source* source) noexcept { return data_of(source).files.size(); }
inline const char* file(const hr_source* source, uint64_t i) noexcept { return data_of(source).files[i].c_str(); }
inline hr_status reader_open(hr_source* source, hr_reader** out, hr_error*) noexcept {
  FakeData& data = data_of(source);
  ++data.readers_open, ++data.readers_opened;
  *out = reinterpret_cast<hr_reader*>(source);
  return HR_OK;
}
inline void reader_close(hr_reader* reader) noexcept { --data_of(reader).readers_open; }

template <class T>
void fill_x(const FakeData& data, T* at, uint64_t index) {
  for (int64_t time = 0; time < fake_times; ++time) {
    for (int64_t channel = 0; channel < data.channels; ++channel) {
      *at++ = static_cast<T>(data.value ? data.value(index, time, channel) : fake_value(index, time, channel));
    }
  }
  if (data.not_a_number.contains(index)) at[-1] = std::numeric_limits<T>::quiet_NaN();
}

inline void read_sample(const FakeData& data, const hr_read& request, uint64_t i) {
  const uint64_t index = request.index[i];
  const std::string name = "record " + std::to_string(index);
  if (data.corrupt.contains(index)) throw sdk::Error(HR_DATA_CORRUPT, "'f.h5' has a damaged " + name);
  if (request.count > 1 && data.corrupt_in_company.contains(index))
    throw sdk::Error(HR_DATA_CORRUPT, name + " dislikes company");
  if (data.io_error.contains(index)) throw sdk::Error(HR_IO, "'f.h5' cannot be read at " + name);
  if (data.refused.contains(index)) throw sdk::Error(HR_UNSUPPORTED, name + " is not supported");
  const int64_t values = fake_times * data.channels;
  if (void* x = request.fields[0].data; x != nullptr) {
    if (data.dtype.bits == 32) fill_x(data, static_cast<float*>(x) + static_cast<int64_t>(i) * values, index);
    if (data.dtype.bits == 64) fill_x(data, static_cast<double*>(x) + static_cast<int64_t>(i) * values, index);
  }
  if (void* label = request.fields[1].data; label != nullptr)
    static_cast<int64_t*>(label)[i] = static_cast<int64_t>(index);
  if (void* draw = request.fields[2].data; draw != nullptr) {
    const bool augment = (request.flags & HR_READ_AUGMENT) != 0;
    static_cast<double*>(draw)[i] = augment ? hr_uniform_f64(hr_philox64(request.key[i], 1, 0)) : -1.0;
  }
}

inline hr_status read(hr_reader* reader, const hr_read* request, hr_error* error) noexcept {
  return sdk::guard(error, [&] {
    FakeData& data = data_of(reader);
    const int reads = ++data.reads;
    ++data.in_flight;
    if (data.delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(reads * 7919 % data.delay_us));
    try {
      if (data.during_read) data.during_read();
      for (uint64_t i = 0; i < request->count; ++i) read_sample(data, *request, i);
    } catch (...) {
      --data.in_flight;
      throw;
    }
    --data.in_flight;
  });
}

inline uint32_t traits(const hr_source* source) noexcept { return data_of(source).keyless ? HR_SOURCE_NO_AUGMENT : 0u; }

inline uint64_t trim(hr_source* source, int32_t level) noexcept {
  FakeData& data = data_of(source);
  ++data.trims;
  for (int look = 0; look < 20; ++look) {
    if (data.in_flight > 0) return ++data.busy_trims, 0;
    std::this_thread::sleep_for(std::chrono::microseconds(10));
  }
  return static_cast<uint64_t>(level) * 100;
}

}  // namespace fake

// `data` must outlive the source.
inline std::shared_ptr<const Source> open_fake(FakeData& data, bool with_gc = true,
                                               std::shared_ptr<Session> session = Session::of_process()) {
  static const hr_options none{sizeof(hr_options), sizeof(hr_option), 0, nullptr};
  static const hr_datasource table{sizeof(hr_datasource),
                                   0,
                                   &none,
                                   fake::open,
                                   fake::close,
                                   fake::field_count,
                                   fake::field,
                                   fake::split_count,
                                   fake::split,
                                   fake::length,
                                   fake::group_count,
                                   fake::group,
                                   nullptr,
                                   fake::file_count,
                                   fake::file,
                                   fake::reader_open,
                                   fake::reader_close,
                                   fake::read,
                                   fake::traits,
                                   nullptr};
  static const hr_gc gc{sizeof(hr_gc), 0, nullptr, fake::trim};
  hr_value value{HR_STRING, 1, 1, {}};
  value.as.string = reinterpret_cast<const char*>(&data);
  return Source::open(table, "fake", &value, {.gc = with_gc ? &gc : nullptr}, std::move(session));
}

}  // namespace headroom
