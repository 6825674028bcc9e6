#include "window_kernel.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/sdk/vector_math.hpp"
#include "headroom/sdk/vectors.hpp"

namespace headroom {
namespace {

using sdk::Vector, sdk::vector_at;

constexpr int64_t kRows = 4;  // queries at once
constexpr float kHidden = -1e30F, kApart = -100.0F;

// e to the x, 0 where that is too small for a normal number: processors take a hundred times as long over products of
// others. What is not a number stays so.
template <int lanes>
HEADROOM_KERNEL_BODY Vector<lanes> probability(Vector<lanes> x) {
  return x < Vector<lanes>{} - 87.0F ? Vector<lanes>{} : sdk::vector_exp<lanes>(x);
}

// One head of one window, laid out for the loops below.
template <int lanes>
struct Head {
  float *k_across, *v_across;             // [width, padded]
  float *k, *v;                           // [padded, row], rows filled up with zeros
  float* logits;                          // [kRows, padded]
  float *dk_across, *dv_across, *hidden;  // [width, padded]; [padded]: kHidden behind the last token
  int64_t row;

  HEADROOM_KERNEL_BODY Head(const WindowBatch& b, float* scratch) : row((b.width + lanes - 1) / lanes * lanes) {
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

  template <int lanes>
  HEADROOM_KERNEL_BODY Vector<lanes> at(int64_t j) const {
    Vector<lanes> sum = vector_at<lanes>(hidden + j);
    if (bias != nullptr) sum += vector_at<lanes>(bias + j);
    if (labels != nullptr) sum += vector_at<lanes>(labels + j) == label ? Vector<lanes>{} : Vector<lanes>{} + kApart;
    return sum;
  }
};

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

struct AddedRows {
  Added row[kRows];

  HEADROOM_KERNEL_BODY AddedRows(const WindowBatch& b, const float* hidden, int64_t window, int64_t index,
                                 const Queries& queries) {
    const float* const labels = b.labels == nullptr ? nullptr : b.labels + window % b.label_windows * b.padded;
    for (int64_t r = 0; r < kRows; ++r) {
      const int64_t token = queries.token[r];
      row[r] = {b.bias == nullptr ? nullptr : b.bias + (index * b.tokens + token) * b.padded, labels, hidden,
                labels == nullptr ? 0.0F : labels[token]};
    }
  }
};

// Four rows, of 16 keys: what products are summed in, two vectors a row with AVX2 and one with AVX-512.
template <int lanes>
struct Block {
  static constexpr int64_t vectors = WindowBatch::kLanes / lanes;
  Vector<lanes> at[kRows][vectors];
};

// [r] = rows[r] . across[:, j ...]
template <int lanes>
HEADROOM_KERNEL_BODY Block<lanes> dot_rows(const float* const* rows, const float* across, int64_t width, int64_t stride,
                                           int64_t j) {
  const float* const row[kRows] = {rows[0], rows[1], rows[2], rows[3]};
  Block<lanes> sums = {};
  for (int64_t d = 0; d < width; ++d) {
    for (int64_t v = 0; v < Block<lanes>::vectors; ++v) {
      const Vector<lanes> column = vector_at<lanes>(across + d * stride + j + v * lanes);
      for (int64_t r = 0; r < kRows; ++r) sums.at[r][v] += row[r][d] * column;
    }
  }
  return sums;
}

// across[:, j ...] += the sum of rows[r] * factors[r]
template <int lanes>
HEADROOM_KERNEL_BODY void add_rows(const float* const* rows, const Block<lanes>& factors, int64_t width, int64_t stride,
                                   int64_t j, float* across) {
  const float* const row[kRows] = {rows[0], rows[1], rows[2], rows[3]};
  const Block<lanes> factor = factors;
  for (int64_t d = 0; d < width; ++d) {
    for (int64_t v = 0; v < Block<lanes>::vectors; ++v) {
      Vector<lanes>& to = vector_at<lanes>(across + d * stride + j + v * lanes);
      Vector<lanes> sum = to;
      for (int64_t r = 0; r < kRows; ++r) sum += row[r][d] * factor.at[r][v];
      to = sum;
    }
  }
}

// to[r] = factor * weights[r] . rows[:, block ... block + lanes), of `padded` rows. Even and odd rows are summed apart:
// more sums are under way at once.
template <int lanes>
HEADROOM_KERNEL_BODY void sum_rows(const float* weights, int64_t padded, const float* rows, int64_t row,
                                   const float* factor, float (*to)[lanes], int64_t block) {
  Vector<lanes> even[kRows] = {}, odd[kRows] = {};
  for (int64_t j = 0; j < padded; j += 2) {
    const Vector<lanes> one = vector_at<lanes>(rows + j * row + block),
                        next = vector_at<lanes>(rows + (j + 1) * row + block);
    for (int64_t r = 0; r < kRows; ++r) {
      even[r] += weights[r * padded + j] * one;
      odd[r] += weights[r * padded + j + 1] * next;
    }
  }
  for (int64_t r = 0; r < kRows; ++r) vector_at<lanes>(to[r]) = (even[r] + odd[r]) * factor[r];
}

template <int lanes>
HEADROOM_KERNEL_BODY void store_rows(const Queries& queries, const float (*from)[lanes], int64_t block, int64_t width,
                                     float* base, const int64_t* offset) {
  for (int64_t r = 0; r < queries.count; ++r) {
    for (int64_t d = block; d < std::min<int64_t>(width, block + lanes); ++d) base[offset[r] + d] = from[r][d - block];
  }
}

template <int lanes>
struct Forward {
  static HEADROOM_KERNEL_BODY void run(const WindowBatch& b, int64_t begin, int64_t end, float* scratch, float* out,
                                       float* norms) {
    Head<lanes> head(b, scratch);
    for (int64_t window = begin; window < end; ++window) {
      for (int64_t index = 0; index < b.heads; ++index) {
        head.load(b, window, index);
        for (int64_t first = 0; first < b.tokens; first += kRows) rows(b, head, window, index, first, out, norms);
      }
    }
  }

  static HEADROOM_KERNEL_BODY void rows(const WindowBatch& b, const Head<lanes>& head, int64_t window, int64_t index,
                                        int64_t first, float* out, float* norms) {
    const Queries queries(b, window, index, first);
    const float scale = 1.0F / std::sqrt(static_cast<float>(b.width));
    Vector<lanes> largest[kRows], total[kRows] = {};
    for (auto& each : largest) each = Vector<lanes>{} + kHidden;
    const AddedRows added(b, head.hidden, window, index, queries);
    for (int64_t j = 0; j < b.padded; j += WindowBatch::kLanes) {
      const Block<lanes> sums = dot_rows<lanes>(queries.at, head.k_across, b.width, b.padded, j);
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t v = 0; v < Block<lanes>::vectors; ++v) {
          const int64_t key = j + v * lanes;
          const Vector<lanes> logit = sums.at[r][v] * scale + added.row[r].template at<lanes>(key);
          largest[r] = logit > largest[r] ? logit : largest[r];
          vector_at<lanes>(head.logits + r * b.padded + key) = logit;
        }
      }
    }
    float factor[kRows], top[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      top[r] = largest[r][0];
      for (int64_t i = 1; i < lanes; ++i) top[r] = std::max(top[r], largest[r][i]);
      for (int64_t j = 0; j < b.padded; j += lanes) {
        Vector<lanes>& p = vector_at<lanes>(head.logits + r * b.padded + j);
        p = probability<lanes>(p - top[r]);
        total[r] += p;
      }
      float sum = 0.0F;
      for (int64_t i = 0; i < lanes; ++i) sum += total[r][i];
      factor[r] = 1.0F / sum;
      norms[(window * b.heads + index) * b.tokens + queries.token[r]] = top[r] + std::log(sum);
    }
    int64_t offset[kRows];
    for (int64_t r = 0; r < kRows; ++r)
      offset[r] = ((window * b.tokens + queries.token[r]) * b.heads + index) * b.width;
    float mixed[kRows][lanes];
    for (int64_t block = 0; block < b.width; block += lanes) {
      sum_rows<lanes>(head.logits, b.padded, head.v, head.row, factor, mixed, block);
      store_rows<lanes>(queries, mixed, block, b.width, out, offset);
    }
  }
};

template <int lanes>
struct Backward {
  static HEADROOM_KERNEL_BODY void run(const WindowBatch& b, int64_t begin, int64_t end, float* scratch,
                                       const WindowGradients& g) {
    Head<lanes> head(b, scratch);
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

  static HEADROOM_KERNEL_BODY void rows(const WindowBatch& b, const Head<lanes>& head, int64_t window, int64_t index,
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
    const AddedRows added(b, head.hidden, window, index, queries);
    for (int64_t j = 0; j < b.padded; j += WindowBatch::kLanes) {
      Block<lanes> probabilities = dot_rows<lanes>(queries.at, head.k_across, b.width, b.padded, j),
                   slopes = dot_rows<lanes>(above, head.v_across, b.width, b.padded, j);
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t v = 0; v < Block<lanes>::vectors; ++v) {
          const int64_t key = j + v * lanes;
          Vector<lanes>&p = probabilities.at[r][v], &slope = slopes.at[r][v];
          p = probability<lanes>(p * scale + added.row[r].template at<lanes>(key) - norm[r]) * live[r];
          slope = p * (slope - delta[r]);
          if (g.bias != nullptr)
            vector_at<lanes>(g.bias + (index * b.tokens + queries.token[r]) * b.padded + key) += slope;
          vector_at<lanes>(head.logits + r * b.padded + key) = slope;
          slope *= scale;
        }
      }
      add_rows<lanes>(above, probabilities, b.width, b.padded, j, head.dv_across);
      add_rows<lanes>(queries.at, slopes, b.width, b.padded, j, head.dk_across);
    }
    int64_t offset[kRows];
    for (int64_t r = 0; r < kRows; ++r) offset[r] = query_row(b, window, index, queries.token[r]);
    const float factor[kRows] = {scale, scale, scale, scale};
    float mixed[kRows][lanes];
    for (int64_t block = 0; block < b.width; block += lanes) {
      sum_rows<lanes>(head.logits, b.padded, head.k, head.row, factor, mixed, block);
      store_rows<lanes>(queries, mixed, block, b.width, g.qkv, offset);
    }
  }
};

}  // namespace

int64_t WindowBatch::scratch_size() const {
  return 4 * width * padded + 2 * padded_to_lanes(width) * padded + (kRows + 1) * padded;
}

void attend_windows(const WindowBatch& batch, int64_t begin, int64_t end, float* scratch, float* out, float* norms) {
  if (sdk::vector_lanes() == 16)
    return sdk::run_kernel<Forward<16>, const WindowBatch&>(batch, begin, end, scratch, out, norms);
  sdk::run_kernel<Forward<8>, const WindowBatch&>(batch, begin, end, scratch, out, norms);
}

void attend_windows_backward(const WindowBatch& batch, int64_t begin, int64_t end, float* scratch,
                             const WindowGradients& gradients) {
  if (sdk::vector_lanes() == 16) {
    return sdk::run_kernel<Backward<16>, const WindowBatch&, int64_t, int64_t, float*, const WindowGradients&>(
        batch, begin, end, scratch, gradients);
  }
  sdk::run_kernel<Backward<8>, const WindowBatch&, int64_t, int64_t, float*, const WindowGradients&>(
      batch, begin, end, scratch, gradients);
}

}  // namespace headroom
