// One recording: an HDF5 file with the records /emg2pose/timeseries {time, joint_angles[J], emg[C]}, found by member
// name, of any width and in any order, and attributes at /emg2pose.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "headroom/datasource.hpp"

namespace emg_hdf5 {

namespace sdk = headroom::sdk;

inline constexpr const char* kGroup = "/emg2pose";
inline constexpr const char* kDataset = "/emg2pose/timeseries";

// What all recordings of a source have in common.
struct Layout {
  uint64_t channels = 0, joints = 0;
  double sample_rate_hz = 0.0;
  std::string angle_unit, emg_unit;  // "": unknown
};

// The dataset with its two members found. Move-only.
struct TimeSeries {
  sdk::Array array;
  uint32_t emg = 0, angles = 0;
  uint64_t channels = 0, joints = 0;
  bool wide_angles = false;  // stored as float64

  // Throws HR_DATA_CORRUPT naming the file when it is not in the layout.
  TimeSeries(const sdk::Host& host, const std::filesystem::path& file);
  uint64_t records() const { return array.info().shape[0]; }
};

struct Recording {
  std::filesystem::path file;
  std::string name;  // the file's without extension
  uint64_t records = 0;
};

// Reads the metadata of one file.
struct Description {
  Recording recording;
  Layout layout;
};
Description describe(const sdk::Host& host, const std::filesystem::path& file);

// Throws HR_INVALID_ARGUMENT naming both files and what differs.
void require_same(const Description& first, const Description& other);

// IK failure as the reference has it: a sample is invalid when every angle is at most 1e-8 in magnitude. NaN is not.
template <class Real>
bool ik_valid(std::span<const Real> angles) {
  for (const Real angle : angles) {
    if (!(std::abs(static_cast<double>(angle)) <= 1e-8)) return true;
  }
  return false;
}

}  // namespace emg_hdf5
