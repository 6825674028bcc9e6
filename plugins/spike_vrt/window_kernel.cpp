#include "window_kernel.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/sdk/vector_math.hpp"

namespace headroom {
namespace {

constexpr int64_t kLanes = WindowBatch::kLanes, kRows = 4;  // keys and queries at once
constexpr float kHidden = -1e30F, kApart = -100.0F;

using Lanes = float __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

HEADROOM_KERNEL_BODY Lanes& lanes(float* p) { return *reinterpret_cast<Lanes*>(p); }
HEADROOM_KERNEL_BODY const Lanes& lanes(const float* p) { return *reinterpret_cast<const Lanes*>(p); }

HEADROOM_KERNEL_BODY void exp_in_place(Lanes& x) {
  for (int64_t i = 0; i < kLanes; ++i) x[i] = sdk::vector_exp(x[i]);
}

// One head of one window, laid out for the loops below.
struct Head {
  float *k_across, *v_across;             // [width, padded]
  float *k, *v;                           // [padded, row], rows filled up with zeros
  float* logits;                          // [kRows, padded]
  float *dk_across, *dv_across, *hidden;  // [width, padded]; [padded]: kHidden behind the last token
  int64_t row;

  HEADROOM_KERNEL_BODY Head(const WindowBatch& b, float* scratch) : row(WindowBatch::padded_to_lanes(b.width)) {
    const auto take = [&scratch](int64_t count) __attribute__((always_inline)) {
      float* const part = scratch;
      scratch += count;
      return part;
    };
    k_across = take(b.width * b.padded), v_across = take(b.width * b.padded);
    dk_across = take(b.width * b.padded), dv_across = take(b.width * b.padded);
    k = take(row * b.padded), v = take(row * b.padded);
    logits = take(kRows * b.padded), hidden = take(b.padded);
    for (int64_t j = 0; j < b.padded; ++j) hidden[j] = j < b.tokens ? 0.0F : kHidden;
  }

  HEADROOM_KERNEL_BODY void load(const WindowBatch& b, int64_t window, int64_t head) {
    const int64_t all = b.heads * b.width;
    for (int64_t j = 0; j < b.padded; ++j) {
      const float* const from = b.qkv + ((window * b.tokens + j) * 3 * b.heads + head) * b.width;
      for (int64_t d = 0; d < row; ++d) {
        const bool real = j < b.tokens && d < b.width;
        const float key = real ? from[all + d] : 0.0F, value = real ? from[2 * all + d] : 0.0F;
        k[j * row + d] = key, v[j * row + d] = value;
        if (d < b.width) k_across[d * b.padded + j] = key, v_across[d * b.padded + j] = value;
      }
    }
  }
};

HEADROOM_KERNEL_BODY int64_t query_row(const WindowBatch& b, int64_t window, int64_t head, int64_t token) {
  return (((b.partners ? window ^ 1 : window) * b.tokens + token) * 3 * b.heads + head) * b.width;
}

// What is added to the logits of a query's keys, block by block.
struct Added {
  const float *bias, *labels, *hidden;
  float label;

  HEADROOM_KERNEL_BODY Lanes at(int64_t j) const {
    Lanes sum = lanes(hidden + j);
    if (bias != nullptr) sum += lanes(bias + j);
    if (labels != nullptr) sum += lanes(labels + j) == label ? Lanes{} : Lanes{} + kApart;
    return sum;
  }
};

HEADROOM_KERNEL_BODY Added added_to(const WindowBatch& b, const Head& head, int64_t window, int64_t index,
                                    int64_t token) {
  const float* const labels = b.labels == nullptr ? nullptr : b.labels + window % b.label_windows * b.padded;
  return {b.bias == nullptr ? nullptr : b.bias + (index * b.tokens + token) * b.padded, labels, head.hidden,
          labels == nullptr ? 0.0F : labels[token]};
}

// Four queries, the last one repeated where there are fewer.
struct Queries {
  int64_t token[kRows], count;
  const float* at[kRows];

  HEADROOM_KERNEL_BODY Queries(const WindowBatch& b, int64_t window, int64_t head, int64_t first)
      : count(std::min(kRows, b.tokens - first)) {
    for (int64_t r = 0; r < kRows; ++r) {
      token[r] = first + std::min(r, count - 1);
      at[r] = b.qkv + query_row(b, window, head, token[r]);
    }
  }
};

// sums[r] = rows[r] . across[:, j ... j + kLanes)
HEADROOM_KERNEL_BODY void dot_rows(const float* const* rows, const float* across, int64_t width, int64_t stride,
                                   int64_t j, Lanes* sums) {
  Lanes s0{}, s1{}, s2{}, s3{};
  for (int64_t d = 0; d < width; ++d) {
    const Lanes column = lanes(across + d * stride + j);
    s0 += rows[0][d] * column, s1 += rows[1][d] * column, s2 += rows[2][d] * column, s3 += rows[3][d] * column;
  }
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

// to[r][0 ... row) = factor[r] * weights[r] . rows[:]
HEADROOM_KERNEL_BODY void sum_rows(const float* weights, int64_t stride, const float* rows, int64_t row, int64_t count,
                                   const float* factor, float (*to)[kLanes], int64_t block) {
  Lanes s0{}, s1{}, s2{}, s3{};
  for (int64_t j = 0; j < count; ++j) {
    const Lanes one = lanes(rows + j * row + block);
    s0 += weights[j] * one, s1 += weights[stride + j] * one;
    s2 += weights[2 * stride + j] * one, s3 += weights[3 * stride + j] * one;
  }
  lanes(to[0]) = s0 * factor[0], lanes(to[1]) = s1 * factor[1];
  lanes(to[2]) = s2 * factor[2], lanes(to[3]) = s3 * factor[3];
}

HEADROOM_KERNEL_BODY void store_rows(const Queries& queries, const float (*from)[kLanes], int64_t block, int64_t width,
                                     float* base, const int64_t* offset) {
  for (int64_t r = 0; r < queries.count; ++r) {
    for (int64_t d = block; d < std::min(width, block + kLanes); ++d) base[offset[r] + d] = from[r][d - block];
  }
}

struct Forward {
  static HEADROOM_KERNEL_BODY void run(const WindowBatch& b, int64_t begin, int64_t end, float* scratch, float* out,
                                       float* norms) {
    Head head(b, scratch);
    for (int64_t window = begin; window < end; ++window) {
      for (int64_t index = 0; index < b.heads; ++index) {
        head.load(b, window, index);
        for (int64_t first = 0; first < b.tokens; first += kRows) rows(b, head, window, index, first, out, norms);
      }
    }
  }

  static HEADROOM_KERNEL_BODY void rows(const WindowBatch& b, const Head& head, int64_t window, int64_t index,
                                        int64_t first, float* out, float* norms) {
    const Queries queries(b, window, index, first);
    const float scale = 1.0F / std::sqrt(static_cast<float>(b.width));
    Lanes sums[kRows], largest[kRows], total[kRows] = {};
    for (auto& each : largest) each = Lanes{} + kHidden;
    for (int64_t j = 0; j < b.padded; j += kLanes) {
      dot_rows(queries.at, head.k_across, b.width, b.padded, j, sums);
      for (int64_t r = 0; r < kRows; ++r) {
        const Lanes logit = sums[r] * scale + added_to(b, head, window, index, queries.token[r]).at(j);
        largest[r] = logit > largest[r] ? logit : largest[r];
        lanes(head.logits + r * b.padded + j) = logit;
      }
    }
    float factor[kRows], top[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      top[r] = largest[r][0];
      for (int64_t i = 1; i < kLanes; ++i) top[r] = std::max(top[r], largest[r][i]);
      for (int64_t j = 0; j < b.padded; j += kLanes) {
        Lanes p = lanes(head.logits + r * b.padded + j) - top[r];
        exp_in_place(p);
        total[r] += p;
        lanes(head.logits + r * b.padded + j) = p;
      }
      float sum = 0.0F;
      for (int64_t i = 0; i < kLanes; ++i) sum += total[r][i];
      factor[r] = 1.0F / sum;
      norms[(window * b.heads + index) * b.tokens + queries.token[r]] = top[r] + std::log(sum);
    }
    int64_t offset[kRows];
    for (int64_t r = 0; r < kRows; ++r)
      offset[r] = ((window * b.tokens + queries.token[r]) * b.heads + index) * b.width;
    float mixed[kRows][kLanes];
    for (int64_t block = 0; block < b.width; block += kLanes) {
      sum_rows(head.logits, b.padded, head.v, head.row, b.tokens, factor, mixed, block);
      store_rows(queries, mixed, block, b.width, out, offset);
    }
  }
};

struct Backward {
  static HEADROOM_KERNEL_BODY void run(const WindowBatch& b, int64_t begin, int64_t end, float* scratch,
                                       const WindowGradients& g) {
    Head head(b, scratch);
    for (int64_t window = begin; window < end; ++window) {
      for (int64_t index = 0; index < b.heads; ++index) {
        head.load(b, window, index);
        std::fill_n(head.dk_across, 2 * b.width * b.padded, 0.0F);
        for (int64_t first = 0; first < b.tokens; first += kRows) rows(b, head, window, index, first, g);
        const int64_t all = b.heads * b.width;
        for (int64_t j = 0; j < b.tokens; ++j) {
          float* const to = g.qkv + ((window * b.tokens + j) * 3 * b.heads + index) * b.width;
          for (int64_t d = 0; d < b.width; ++d) {
            to[all + d] = head.dk_across[d * b.padded + j];
            to[2 * all + d] = head.dv_across[d * b.padded + j];
          }
        }
      }
    }
  }

  static HEADROOM_KERNEL_BODY void rows(const WindowBatch& b, const Head& head, int64_t window, int64_t index,
                                        int64_t first, const WindowGradients& g) {
    const Queries queries(b, window, index, first);
    const float scale = 1.0F / std::sqrt(static_cast<float>(b.width));
    const float* above[kRows];
    float norm[kRows], delta[kRows], live[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      const int64_t at = ((window * b.tokens + queries.token[r]) * b.heads + index) * b.width;
      above[r] = g.above + at;
      norm[r] = g.norms[(window * b.heads + index) * b.tokens + queries.token[r]];
      live[r] = r < queries.count ? 1.0F : 0.0F;  // what is there only to fill up adds nothing
      delta[r] = 0.0F;
      for (int64_t d = 0; d < b.width; ++d) delta[r] += above[r][d] * g.out[at + d];
    }
    Lanes sums[kRows], probabilities[kRows], slopes[kRows];
    for (int64_t j = 0; j < b.padded; j += kLanes) {
      dot_rows(queries.at, head.k_across, b.width, b.padded, j, sums);
      dot_rows(above, head.v_across, b.width, b.padded, j, slopes);
      for (int64_t r = 0; r < kRows; ++r) {
        Lanes p = sums[r] * scale + added_to(b, head, window, index, queries.token[r]).at(j) - norm[r];
        exp_in_place(p);
        probabilities[r] = p * live[r];
        slopes[r] = probabilities[r] * (slopes[r] - delta[r]);
        lanes(head.logits + r * b.padded + j) = slopes[r];
        if (g.bias != nullptr) lanes(g.bias + (index * b.tokens + queries.token[r]) * b.padded + j) += slopes[r];
      }
      for (int64_t d = 0; d < b.width; ++d) {
        Lanes &dk = lanes(head.dk_across + d * b.padded + j), &dv = lanes(head.dv_across + d * b.padded + j);
        dk += scale * (slopes[0] * queries.at[0][d] + slopes[1] * queries.at[1][d] + slopes[2] * queries.at[2][d] +
                       slopes[3] * queries.at[3][d]);
        dv += probabilities[0] * above[0][d] + probabilities[1] * above[1][d] + probabilities[2] * above[2][d] +
              probabilities[3] * above[3][d];
      }
    }
    int64_t offset[kRows];
    for (int64_t r = 0; r < kRows; ++r) offset[r] = query_row(b, window, index, queries.token[r]);
    const float factor[kRows] = {scale, scale, scale, scale};
    float mixed[kRows][kLanes];
    for (int64_t block = 0; block < b.width; block += kLanes) {
      sum_rows(head.logits, b.padded, head.k, head.row, b.tokens, factor, mixed, block);
      store_rows(queries, mixed, block, b.width, g.qkv, offset);
    }
  }
};

}  // namespace

int64_t WindowBatch::scratch_size() const {
  return 4 * width * padded + 2 * padded_to_lanes(width) * padded + (kRows + 1) * padded;
}

void attend_windows(const WindowBatch& batch, int64_t begin, int64_t end, float* scratch, float* out, float* norms) {
  sdk::run_kernel<Forward, const WindowBatch&>(batch, begin, end, scratch, out, norms);
}

void attend_windows_backward(const WindowBatch& batch, int64_t begin, int64_t end, float* scratch,
                             const WindowGradients& gradients) {
  sdk::run_kernel<Backward, const WindowBatch&, int64_t, int64_t, float*, const WindowGradients&>(batch, begin, end,
                                                                                                  scratch, gradients);
}

}  // namespace headroom
