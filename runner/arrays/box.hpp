// Arithmetic of boxes in row-major arrays: which elements of a block of the file are wanted, and where each one goes.
// Pure functions; extents, strides and positions count elements.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "headroom/abi.h"

namespace headroom {

using Coordinates = std::array<uint64_t, HR_MAX_DIMS>;

inline uint64_t product(std::span<const uint64_t> extents) {
  uint64_t all = 1;
  for (const uint64_t extent : extents) all *= extent;
  return all;
}

// What a copy does, as `axes` nested loops from the outermost to the innermost. The innermost stride is 1 on both
// sides.
struct Region {
  size_t axes = 0;
  Coordinates count{}, from_stride{}, to_stride{};
  uint64_t from = 0;  // the first element's position in the block
  uint64_t to = 0;    // its position in the box
};

// The intersection of the box [start, start + count) with a block of `block_shape` whose first element is at `origin`.
// Neighbouring axes become one loop where both sides are dense. REQUIRES that box and block intersect.
inline Region region_of(std::span<const uint64_t> start, std::span<const uint64_t> count,
                        std::span<const uint64_t> origin, std::span<const uint64_t> block_shape) {
  Region all;
  Coordinates taken{}, from_stride{}, to_stride{};
  uint64_t from_step = 1, to_step = 1;
  for (size_t axis = count.size(); axis-- > 0;) {
    const uint64_t first = std::max(start[axis], origin[axis]);
    const uint64_t end = std::min(start[axis] + count[axis], origin[axis] + block_shape[axis]);
    taken[axis] = end - first;
    from_stride[axis] = from_step;
    to_stride[axis] = to_step;
    all.from += (first - origin[axis]) * from_step;
    all.to += (first - start[axis]) * to_step;
    from_step *= block_shape[axis];
    to_step *= count[axis];
  }
  for (size_t axis = 0; axis < count.size(); ++axis) {
    if (taken[axis] == 1 && axis + 1 < count.size()) continue;
    const size_t last = all.axes;
    const bool runs_on = last > 0 && all.from_stride[last - 1] == taken[axis] * from_stride[axis] &&
                         all.to_stride[last - 1] == taken[axis] * to_stride[axis];
    const size_t at = runs_on ? last - 1 : all.axes++;
    all.count[at] = runs_on ? all.count[at] * taken[axis] : taken[axis];
    all.from_stride[at] = from_stride[axis];
    all.to_stride[at] = to_stride[axis];
  }
  if (all.axes == 0) all = {1, {1}, {1}, {1}, all.from, all.to};
  return all;
}

// visit(at) for every cell of a grid from `first` to before `end`, row-major. REQUIRES first < end along each axis.
template <class Visit>
void each_cell(const Coordinates& first, const Coordinates& end, size_t axes, Visit&& visit) {
  for (Coordinates at = first;;) {
    visit(std::as_const(at));
    size_t axis = axes;
    while (axis > 0 && ++at[axis - 1] == end[axis - 1]) {
      --axis;
      at[axis] = first[axis];
    }
    if (axis == 0) return;
  }
}

// visit(start, count) for the blocks of at most `extents` that the box [start, start + count) is cut into, row-major.
// REQUIRES that the box is not empty.
template <class Visit>
void each_block(std::span<const uint64_t> start, std::span<const uint64_t> count, std::span<const uint64_t> extents,
                Visit&& visit) {
  const size_t axes = count.size();
  Coordinates blocks{};
  for (size_t axis = 0; axis < axes; ++axis) blocks[axis] = (count[axis] - 1) / extents[axis] + 1;
  each_cell({}, blocks, axes, [&](const Coordinates& at) {
    Coordinates from{}, taken{};
    for (size_t axis = 0; axis < axes; ++axis) {
      const uint64_t done = at[axis] * extents[axis];
      from[axis] = start[axis] + done;
      taken[axis] = std::min(extents[axis], count[axis] - done);
    }
    visit(std::span<const uint64_t>(from.data(), axes), std::span<const uint64_t>(taken.data(), axes));
  });
}

// run(from, to, elements) for each row of neighbours over the axes [axis, region.axes).
template <class Run>
void each_run(const Region& region, size_t axis, uint64_t from, uint64_t to, Run&& run) {
  if (axis + 1 == region.axes) return run(from, to, region.count[axis]);
  for (uint64_t i = 0; i < region.count[axis]; ++i)
    each_run(region, axis + 1, from + i * region.from_stride[axis], to + i * region.to_stride[axis], run);
}

}  // namespace headroom
