// A clip too large for one run is restored in tiles that overlap in time and space; torch-free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace headroom {

struct Tiles {
  bool used = false;
  int64_t frames = 0, pixels = 0;  // of one tile; 0: the whole clip, the whole frame
  int64_t frame_overlap = 2, pixel_overlap = 20;
};

// The least a frame's side may be: at an eighth of it lies one window, at 1/32 more than one pixel of the optical
// flow's pyramid.
inline int64_t least_pixels(int64_t window) { return std::max<int64_t>(8 * window, 40); }

// Where tiles of length `tile` begin: one after another, the last one at the very end.
inline std::vector<int64_t> tile_starts(int64_t size, int64_t tile, int64_t overlap) {
  std::vector<int64_t> starts;
  for (int64_t start = 0; start < size - tile; start += tile - overlap) starts.push_back(start);
  starts.push_back(size > tile ? size - tile : 0);
  return starts;
}

}  // namespace headroom
