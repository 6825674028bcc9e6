#include "window.hpp"

#include <numbers>
#include <vector>

namespace headroom {
namespace {

// [d, h, w] -> [windows, tokens]
at::Tensor by_window(const at::Tensor& grid, const Extent& window) {
  return grid
      .view({grid.size(0) / window[0], window[0], grid.size(1) / window[1], window[1], grid.size(2) / window[2],
             window[2]})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({-1, window[0] * window[1] * window[2]});
}

// What was wrapped around to the other end of an axis, and what lies in its last window: 0, 1, 2.
at::Tensor axis_labels(int64_t padded, int64_t window, int64_t shift) {
  const at::Tensor place = at::arange(padded);
  if (shift == 0) return at::zeros_like(place);
  return place.ge(padded - window).to(at::kLong) + place.ge(padded - shift).to(at::kLong);
}

RowOrder order_of(const Extent& size, const WindowCut& cut, const Extent& shift) {
  const int64_t count = size[0] * size[1] * size[2];
  at::Tensor rows = at::full(cut.padded, -1, at::kLong);
  rows.slice(0, 0, size[0]).slice(1, 0, size[1]).slice(2, 0, size[2]) =
      at::arange(count).view(size);  // NOLINT: copies into the slice
  const at::Tensor to = by_window(rows.roll({-shift[0], -shift[1], -shift[2]}, {0, 1, 2}), cut.window).flatten();
  const at::Tensor places = to.ge(0).nonzero().squeeze(1);
  at::Tensor from = at::empty({count}, at::kLong);
  from.index_put_({to.index_select(0, places)}, places);
  return {to.contiguous(), from};
}

// Sines in even places, cosines in odd ones: [count, width] for the places 1 ... count of one axis.
at::Tensor axis_waves(int64_t count, int64_t width) {
  const at::Tensor pairs = at::arange(width, at::kFloat).div(2, "floor");
  const at::Tensor periods = at::pow(at::full({}, 10000.0, at::kFloat), pairs * 2 / static_cast<double>(width));
  const at::Tensor turns = at::arange(1, count + 1, at::kFloat) / (static_cast<double>(count) + 1e-6);
  const at::Tensor angles = (turns * (2.0 * std::numbers::pi)).unsqueeze(1) / periods;
  return at::where(at::arange(width).remainder(2).to(at::kBool), angles.cos(), angles.sin());
}

}  // namespace

WindowCut cut_windows(const Extent& size, const Extent& window, const Extent& shift) {
  WindowCut cut;
  Extent moved{};
  for (std::size_t axis = 0; axis < size.size(); ++axis) {
    const bool whole = size[axis] <= window[axis];
    cut.window[axis] = whole ? size[axis] : window[axis];
    moved[axis] = whole ? 0 : shift[axis];
    cut.padded[axis] = (size[axis] + cut.window[axis] - 1) / cut.window[axis] * cut.window[axis];
  }
  cut.tokens = cut.window[0] * cut.window[1] * cut.window[2];
  cut.windows = cut.padded[0] * cut.padded[1] * cut.padded[2] / cut.tokens;
  cut.order = order_of(size, cut, moved);
  if (moved == Extent{}) return cut;
  std::array<at::Tensor, 3> axes;
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    axes[axis] = axis_labels(cut.padded[axis], cut.window[axis], moved[axis]);
  cut.labels = by_window(axes[0].view({-1, 1, 1}) * 9 + axes[1].view({-1, 1}) * 3 + axes[2], cut.window);
  return cut;
}

at::Tensor attention_mask(const at::Tensor& labels, const at::TensorOptions& options) {
  const at::Tensor apart = labels.unsqueeze(1).ne(labels.unsqueeze(2));
  return apart.to(options.device()).to(options.dtype().toScalarType()).mul_(-100.0);
}

at::Tensor relative_position_index(const Extent& configured, int64_t tokens) {
  const auto [depth, rows, columns] = configured;
  const at::Tensor place = at::arange(tokens);
  const at::Tensor frame = place.div(rows * columns, "floor"), row = place.div(columns, "floor").remainder(rows),
                   column = place.remainder(columns);
  const auto between = [](const at::Tensor& axis, int64_t length) {
    return axis.unsqueeze(1) - axis.unsqueeze(0) + (length - 1);
  };
  return (between(frame, depth) * (2 * rows - 1) + between(row, rows)) * (2 * columns - 1) + between(column, columns);
}

at::Tensor position_bias(int64_t rows, int64_t columns, int64_t width) {
  const at::Tensor down = axis_waves(rows, width / 2).unsqueeze(1).expand({rows, columns, width / 2});
  const at::Tensor across = axis_waves(columns, width / 2).unsqueeze(0).expand({rows, columns, width / 2});
  return at::cat({down, across}, 2).view({rows * columns, width});
}

const WindowCut& WindowTables::cut(const Extent& size, const Extent& window, const Extent& shift) {
  const std::scoped_lock lock(mutex_);
  const std::array<Extent, 3> key{size, window, shift};
  const auto found = cuts_.find(key);
  return found != cuts_.end() ? found->second : cuts_.emplace(key, cut_windows(size, window, shift)).first->second;
}

const at::Tensor& WindowTables::index(const Extent& configured, int64_t tokens) {
  const std::scoped_lock lock(mutex_);
  at::Tensor& index = indices_[{configured, tokens}];
  if (!index.defined()) index = relative_position_index(configured, tokens).flatten();
  return index;
}

const at::Tensor& WindowTables::position(int64_t rows, int64_t columns, const at::TensorOptions& options,
                                         int64_t width) {
  const std::scoped_lock lock(mutex_);
  const at::ScalarType dtype = options.dtype().toScalarType();
  at::Tensor& position =
      positions_[{rows, columns, width, static_cast<int64_t>(dtype), static_cast<int64_t>(options.device().is_cpu())}];
  if (!position.defined()) position = position_bias(rows, columns, width).to(options.device(), dtype);
  return position;
}

}  // namespace headroom
