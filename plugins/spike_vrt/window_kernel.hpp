// Attention within windows on the CPU, in float32: no probability is ever stored for longer than four rows. Torch-free.
#pragma once

#include <cstdint>

namespace headroom {

// Windows of queries, keys and values [window, token, 3, head, width]. Rows over keys are `padded` long, a multiple of
// kLanes.
struct WindowBatch {
  static constexpr int64_t kLanes = 16;

  int64_t tokens = 0, padded = 0, heads = 0, width = 0;
  bool partners = false;  // the queries of window i are those of window i ^ 1
  const float* qkv = nullptr;
  const float* bias = nullptr;    // [head, token, padded]; NULL: none
  const float* labels = nullptr;  // [label window, padded], of window i % label_windows; NULL: all alike
  int64_t label_windows = 1;

  static int64_t padded_to_lanes(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }
  // Floats of scratch a thread needs.
  int64_t scratch_size() const;
};

// Windows [begin, end). out [window, token, head, width]; norms [window, head, token], the logarithm of each row's sum.
void attend_windows(const WindowBatch& batch, int64_t begin, int64_t end, float* scratch, float* out, float* norms);

// Writes `qkv`, of WindowBatch::qkv, and adds to `bias` [head, token, padded] (NULL: not wanted). With partners,
// `begin` and `end` are even.
struct WindowGradients {
  const float *above = nullptr, *out = nullptr, *norms = nullptr;  // of and from attend_windows()
  float *qkv = nullptr, *bias = nullptr;
};
void attend_windows_backward(const WindowBatch& batch, int64_t begin, int64_t end, float* scratch,
                             const WindowGradients& gradients);

}  // namespace headroom
