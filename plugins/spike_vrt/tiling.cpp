#include "tiling.hpp"

#include <algorithm>
#include <numeric>

namespace headroom {
namespace {

constexpr int64_t kPixelUnit = 8;  // the network halves frames three times

// An axis shorter than what it lacks becomes twice as long, as in the reference.
at::Tensor mirrored(const at::Tensor& clip, int64_t axis, int64_t unit) {
  const int64_t size = clip.size(axis), missing = std::min((unit - size % unit) % unit, size);
  return missing == 0 ? clip : at::cat({clip, clip.narrow(axis, size - missing, missing).flip(axis)}, axis);
}

at::Tensor zeros_for(const at::Tensor& clip) {
  return at::zeros({clip.size(0), clip.size(1), 3, clip.size(3), clip.size(4)}, clip.options());
}

// What a tile gives along one axis: all but half of what it shares with a neighbour, the larger half at its far side.
struct Kept {
  int64_t first, count;
};
Kept kept_of(int64_t start, int64_t length, int64_t size, int64_t overlap) {
  const int64_t near = start > 0 ? overlap / 2 : 0, far = start + length < size ? overlap - overlap / 2 : 0;
  return {near, length - near - far};
}

at::Tensor in_space(const at::Tensor& clip, const Tiles& tiles, const Extent& window, const Restore& restore) {
  if (tiles.pixels == 0)
    return restore_padded(clip, {1, std::lcm(window[1], kPixelUnit), std::lcm(window[2], kPixelUnit)}, restore);
  const int64_t rows = clip.size(3), columns = clip.size(4), height = std::min(tiles.pixels, rows),
                width = std::min(tiles.pixels, columns);
  at::Tensor sum = zeros_for(clip), count = at::zeros({rows, columns}, clip.options());
  for (const int64_t top : tile_starts(rows, tiles.pixels, tiles.pixel_overlap)) {
    for (const int64_t left : tile_starts(columns, tiles.pixels, tiles.pixel_overlap)) {
      // Along an axis that is shorter than a tile it is the whole frame, of any size.
      const at::Tensor tile =
          restore_padded(clip.narrow(3, top, height).narrow(4, left, width), {1, kPixelUnit, kPixelUnit}, restore);
      const Kept y = kept_of(top, height, rows, tiles.pixel_overlap),
                 x = kept_of(left, width, columns, tiles.pixel_overlap);
      sum.narrow(3, top + y.first, y.count)
          .narrow(4, left + x.first, x.count)
          .add_(tile.narrow(3, y.first, y.count).narrow(4, x.first, x.count));
      count.narrow(0, top + y.first, y.count).narrow(1, left + x.first, x.count).add_(1.0);
    }
  }
  return sum.div_(count);
}

}  // namespace

at::Tensor restore_padded(const at::Tensor& clip, const Extent& unit, const Restore& restore) {
  const at::Tensor padded = mirrored(mirrored(mirrored(clip, 1, unit[0]), 3, unit[1]), 4, unit[2]);
  return restore(padded).narrow(1, 0, clip.size(1)).narrow(3, 0, clip.size(3)).narrow(4, 0, clip.size(4));
}

at::Tensor restore_tiled(const at::Tensor& clip, const Tiles& tiles, const Extent& window, const Restore& restore) {
  const Restore spatial = [&](const at::Tensor& part) { return in_space(part, tiles, window, restore); };
  if (tiles.frames == 0) return restore_padded(clip, {window[0], 1, 1}, spatial);
  const int64_t frames = clip.size(1), length = std::min(tiles.frames, frames);
  at::Tensor sum = zeros_for(clip), count = at::zeros({frames, 1, 1, 1}, clip.options());
  for (const int64_t start : tile_starts(frames, tiles.frames, tiles.frame_overlap)) {
    sum.narrow(1, start, length).add_(spatial(clip.narrow(1, start, length)));
    count.narrow(0, start, length).add_(1.0);
  }
  return sum.div_(count);
}

}  // namespace headroom
