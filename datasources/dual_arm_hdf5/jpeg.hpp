// JPEG frames as ALOHA's writers leave them: one a row, padded with zeros behind the end-of-image marker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace dual_arm_hdf5 {

struct FrameSize {
  uint64_t height = 0, width = 0;
  bool operator==(const FrameSize&) const = default;
};

// What is wrong with a frame, as a clause: "is no whole JPEG (Premature end of JPEG file)".
struct BadJpeg : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Decodes strictly: what libjpeg would only warn of is a BadJpeg too. One a thread; keeps its memory between frames.
class JpegDecoder {
 public:
  JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;
  ~JpegDecoder();

  FrameSize size(std::span<const uint8_t> row);

  // planes[3][height][width], channels as they were given to the encoder: OpenCV wrote RGB arrays as if they were BGR,
  // so that red and blue of the JPEG itself change places. BadJpeg when the frame is not of `expected` size.
  void decode(std::span<const uint8_t> row, const FrameSize& expected, std::span<uint8_t> planes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dual_arm_hdf5
