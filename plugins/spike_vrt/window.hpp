// Windows of a clip: what belongs together in attention, and what does not.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <torch/torch.h>
#include <utility>

#include "rows.hpp"
#include "vrt_shape.hpp"

namespace headroom {

// How a clip of `size` is cut into windows of `window`, moved by `shift`. Along an axis no longer than its window, the
// window is the whole axis and nothing is moved. Padding, at the ends, is tokens of zeros. Pure, and cheap to keep.
struct WindowCut {
  Extent window{}, padded{};  // as used
  int64_t windows = 0, tokens = 0;
  RowOrder order;  // of a clip's tokens, frame by frame, row by row: by window
  at::Tensor
      labels;  // int64 [windows, tokens]: tokens of one window see each other where these are equal. Undefined: all
};

WindowCut cut_windows(const Extent& size, const Extent& window, const Extent& shift);

// [windows, tokens, tokens], -100 between tokens of different labels.
at::Tensor attention_mask(const at::Tensor& labels, const at::TensorOptions& options);

// Row of the table of relative positions for query and key: [tokens, tokens], counted as if the tokens filled a window
// of the configured size from its first place on.
at::Tensor relative_position_index(const Extent& configured, int64_t tokens);

// Sines of the place in a window, [rows * columns, width].
at::Tensor position_bias(int64_t rows, int64_t columns, int64_t width);

// What was computed for sizes met before. [any]
class WindowTables {
 public:
  const WindowCut& cut(const Extent& size, const Extent& window, const Extent& shift);
  const at::Tensor& index(const Extent& configured, int64_t tokens);
  // As position_bias().
  const at::Tensor& position(int64_t rows, int64_t columns, const at::TensorOptions& options, int64_t width);

 private:
  std::mutex mutex_;
  std::map<std::array<Extent, 3>, WindowCut> cuts_;
  std::map<std::pair<Extent, int64_t>, at::Tensor> indices_;
  std::map<std::array<int64_t, 5>, at::Tensor> positions_;
};

}  // namespace headroom
