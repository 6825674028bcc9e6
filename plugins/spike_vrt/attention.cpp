#include "attention.hpp"

#include <cmath>

namespace headroom {
namespace {

// Queries, keys and values [windows, tokens, heads, width]; bias [heads, tokens, tokens] or undefined; labels as a
// WindowCut's or undefined. [windows, tokens, heads * width]
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias,
                  const at::Tensor& labels) {
  const int64_t tokens = q.size(1), heads = q.size(2);
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(3)));
  at::Tensor logits = (q.transpose(1, 2) * scale).matmul(k.permute({0, 2, 3, 1}));
  if (bias.defined()) logits = logits + bias;
  if (labels.defined()) {
    const at::Tensor mask = attention_mask(labels, logits.options()).unsqueeze(1);
    logits = (logits.view({-1, labels.size(0), heads, tokens, tokens}) + mask).view(logits.sizes());
  }
  return logits.softmax(-1).matmul(v.transpose(1, 2)).transpose(1, 2).flatten(2);
}

at::Tensor self_attention(const at::Tensor& windows, const at::Tensor& table, const at::Tensor& weight,
                          const at::Tensor& bias, const AttentionShape& shape, const at::Tensor& labels,
                          WindowTables& tables) {
  const int64_t tokens = windows.size(1);
  const at::Tensor qkv = at::linear(windows, weight, bias).unflatten(2, {3, shape.heads, -1});
  const at::Tensor& index = tables.index(shape.window, tokens);
  const at::Tensor relative =
      table.index_select(0, index.to(table.device())).view({tokens, tokens, shape.heads}).permute({2, 0, 1});
  return attend(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), relative, labels);
}

// The first frame of a window is seen with the queries of the second, and the other way round. What was wrapped around
// between the two is not masked: both have the mask of the first.
at::Tensor mutual_attention(const at::Tensor& windows, const at::Tensor& weight, const at::Tensor& bias,
                            const AttentionShape& shape, const at::Tensor& labels, WindowTables& tables) {
  const at::Tensor& position = tables.position(shape.window[1], shape.window[2], windows.options(), windows.size(2));
  const int64_t half = position.size(0);
  const at::Tensor frames = windows.unflatten(1, {2, half}) + position;
  const at::Tensor qkv = at::linear(frames, weight, bias).unflatten(3, {3, shape.heads, -1});
  const at::Tensor q = qkv.select(3, 0).flip(1).flatten(0, 1), k = qkv.select(3, 1).flatten(0, 1),
                   v = qkv.select(3, 2).flatten(0, 1);
  at::Tensor both;
  if (labels.defined()) both = labels.narrow(1, 0, half).repeat_interleave(2, 0);
  return attend(q, k, v, {}, both).view(windows.sizes());
}

}  // namespace

at::Tensor attention_branch(const at::Tensor& x, TensorSpan p, const AttentionShape& shape, WindowTables& tables) {
  const int64_t batch = x.size(0), width = x.size(4);
  const WindowCut& cut = tables.cut({x.size(1), x.size(2), x.size(3)}, shape.window, shape.shift);
  const at::Tensor normed = at::layer_norm(x, {width}, p[0], p[1], 1e-5);
  const at::Tensor windows = take_rows(normed.flatten(1, 3), cut.order).view({-1, cut.tokens, width});
  at::Tensor mixed = self_attention(windows, p[2], p[3], p[4], shape, cut.labels, tables);
  if (shape.mutual) mixed = at::cat({mutual_attention(windows, p[7], p[8], shape, cut.labels, tables), mixed}, 2);
  const at::Tensor result = at::linear(mixed, p[5], p[6]);
  return put_back_rows(result.view({batch, -1, width}), cut.order).view(x.sizes());
}

at::Tensor gated_mlp(const at::Tensor& x, TensorSpan p) {
  return at::linear(at::gelu(at::linear(x, p[0], p[1])) * at::linear(x, p[2], p[3]), p[4], p[5]);
}

at::Tensor mlp_branch(const at::Tensor& x, TensorSpan p) {
  return gated_mlp(at::layer_norm(x, {x.size(4)}, p[0], p[1], 1e-5), p.subspan(2));
}

}  // namespace headroom
