// Reads windows into slots: one contiguous slice of records for each sample.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"
#include "headroom/sdk/kept_open.hpp"
#include "recording.hpp"
#include "windows.hpp"

namespace emg_hdf5 {

// Field numbers, in the order of EmgSource::fields().
inline constexpr uint32_t kEmg = 0, kAngles = 1, kValid = 2;

// What a source offers, resolved: fixed once the source is open, shared by its readers.
struct Selection {
  WindowShape shape;
  bool jitter = true;
  uint64_t channel_rotation = 0;  // channels, either way
  Layout layout;
  std::vector<Recording> recordings;
  struct Split {
    std::string name;
    WindowTable windows;
    std::vector<sdk::Group> groups;
  };
  std::vector<Split> splits;
};

// For one thread. Keeps the recordings it read last open.
class Reader {
 public:
  Reader(const sdk::Host& host, const Selection& selection) : host_(host), selection_(&selection) {}
  void read(const sdk::ReadRequest& request);

 private:
  TimeSeries opened(uint32_t recording) const;
  void read_sample(const sdk::ReadRequest& request, uint64_t i);

  sdk::Host host_;
  const Selection* selection_;
  sdk::KeptOpen<TimeSeries> open_;
  std::vector<float> angles_;
  std::vector<double> wide_angles_;
};

}  // namespace emg_hdf5
