// One episode: an HDF5 file in ALOHA's layout, with /observations/qpos [T, A], /action [T, B] and one dataset a camera
// under /observations/images: [T, H, W, 3] pixels or [T, P] rows of zero-padded JPEG.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"
#include "jpeg.hpp"

namespace dual_arm_hdf5 {

namespace sdk = headroom::sdk;

inline constexpr const char* kQpos = "/observations/qpos";
inline constexpr const char* kAction = "/action";
inline constexpr const char* kImages = "/observations/images";

struct Camera {
  std::string dataset;
  sdk::Array array;
  FrameSize pixels;        // of raw frames; 0 x 0: JPEG rows, whose frames tell their size themselves
  uint64_t row_bytes = 0;  // of one step
  bool is_jpeg() const { return pixels.height == 0; }
};

// The datasets of one file, checked against each other. Move-only; many threads may read it.
struct Episode {
  // Throws HR_DATA_CORRUPT naming file and dataset when it is not in the layout.
  Episode(const sdk::Host& host, const std::filesystem::path& file, const std::vector<std::string>& cameras);

  std::filesystem::path file;
  sdk::Array qpos, action;
  std::vector<Camera> cameras;
  uint64_t steps() const { return qpos.info().shape[0]; }
  uint64_t joints() const { return qpos.info().shape[1]; }
  uint64_t actions() const { return action.info().shape[1]; }
};

// The cameras of a file in byte order, without those of depth ("..._depth").
std::vector<std::string> cameras_of(const sdk::Host& host, const std::filesystem::path& file);

// Whether a simulator recorded the file: attribute `sim`, false or missing in real recordings.
bool is_simulated(const sdk::Host& host, const std::filesystem::path& file);

// Reads and decodes one frame into planes [3, H, W].
class FrameReader {
 public:
  // HR_DATA_CORRUPT naming file, camera and step when the frame is damaged or not of `size`.
  void read(const Episode& episode, const Camera& camera, uint64_t step, const FrameSize& size,
            std::span<uint8_t> planes);
  FrameSize size(const Episode& episode, const Camera& camera, uint64_t step);

 private:
  std::span<const uint8_t> row(const Camera& camera, uint64_t step);
  template <class Decode>
  static void blame(const Episode& episode, const Camera& camera, uint64_t step, Decode&& decode);

  std::vector<uint8_t> row_;
  JpegDecoder jpeg_;
};

}  // namespace dual_arm_hdf5
