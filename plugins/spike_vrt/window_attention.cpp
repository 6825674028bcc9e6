#include "window_attention.hpp"

#include <ATen/Parallel.h>
#include <cmath>

#include "window.hpp"
#include "window_kernel.hpp"

namespace headroom {
namespace {

// The kernel's arguments, and the tensors they point into. The kernel computes in float32; tensors kept for backward
// stay in the type that came in.
struct Windows {
  at::Tensor qkv, bias, labels;
  WindowBatch batch;

  Windows(const at::Tensor& given, const at::Tensor& bias_, const at::Tensor& labels_, bool partners)
      : qkv(given.to(at::kFloat)), bias(bias_), labels(labels_) {
    batch.tokens = qkv.size(1), batch.heads = qkv.size(3), batch.width = qkv.size(4);
    batch.padded = WindowBatch::padded_to_lanes(batch.tokens);
    batch.partners = partners;
    batch.qkv = qkv.const_data_ptr<float>();
    if (bias.defined()) batch.bias = bias.const_data_ptr<float>();
    if (!labels.defined()) return;
    batch.labels = labels.const_data_ptr<float>();
    batch.label_windows = labels.size(0);
  }
  at::Tensor scratch() const { return at::empty({batch.scratch_size()}, qkv.options()); }
};

at::Tensor padded_rows(const std::optional<at::Tensor>& x) {
  if (!x) return {};
  const int64_t missing = WindowBatch::padded_to_lanes(x->size(-1)) - x->size(-1);
  return (missing == 0 ? *x : at::constant_pad_nd(*x, {0, missing})).to(at::kFloat).contiguous();
}

std::optional<at::Tensor> if_defined(const at::Tensor& x) {
  return x.defined() ? std::optional<at::Tensor>(x) : std::nullopt;
}

struct WindowAttention : torch::autograd::Function<WindowAttention> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& given,
                            const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& labels,
                            bool partners) {
    const at::Tensor kept = given.contiguous();
    const Windows windows(kept, padded_rows(bias), padded_rows(labels), partners);
    const at::Tensor& qkv = windows.qkv;
    const WindowBatch& batch = windows.batch;
    at::Tensor out = at::empty({qkv.size(0), batch.tokens, batch.heads * batch.width}, qkv.options()),
               norms = at::empty({qkv.size(0), batch.heads, batch.tokens}, qkv.options());
    at::parallel_for(0, qkv.size(0), 1, [&](int64_t begin, int64_t end) {
      at::Tensor scratch = windows.scratch();
      attend_windows(batch, begin, end, scratch.mutable_data_ptr<float>(), out.mutable_data_ptr<float>(),
                     norms.mutable_data_ptr<float>());
    });
    const at::Tensor result = out.to(kept.scalar_type());
    context->save_for_backward({kept, windows.bias, windows.labels, result, norms});
    context->saved_data["partners"] = partners;
    return result;
  }

  // Windows in as many even parts as there are threads, each with a sum of its own for the bias.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor out = saved[3].to(at::kFloat), &norms = saved[4], above = gradients[0].to(at::kFloat).contiguous();
    const Windows windows(saved[0], saved[1], saved[2], context->saved_data["partners"].toBool());
    const WindowBatch& batch = windows.batch;
    const at::Tensor& qkv = windows.qkv;
    const int64_t pairs = (qkv.size(0) + 1) / 2, parts = std::min<int64_t>(at::get_num_threads(), pairs);
    at::Tensor to_qkv = at::empty_like(qkv), to_bias;
    if (windows.bias.defined()) to_bias = at::zeros({parts, batch.heads, batch.tokens, batch.padded}, qkv.options());
    at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
      at::Tensor scratch = windows.scratch();
      for (int64_t part = first; part < last; ++part) {
        const WindowGradients given{
            above.const_data_ptr<float>(), out.const_data_ptr<float>(), norms.const_data_ptr<float>(),
            to_qkv.mutable_data_ptr<float>(),
            to_bias.defined() ? to_bias.mutable_data_ptr<float>() + part * to_bias.stride(0) : nullptr};
        attend_windows_backward(batch, part * pairs / parts * 2, std::min((part + 1) * pairs / parts * 2, qkv.size(0)),
                                scratch.mutable_data_ptr<float>(), given);
      }
    });
    if (to_bias.defined()) to_bias = to_bias.sum(0).narrow(2, 0, batch.tokens);
    return {to_qkv, to_bias, {}, {}};
  }
};

}  // namespace

at::Tensor attend_plainly(const at::Tensor& qkv, const at::Tensor& bias, const at::Tensor& labels, bool partners) {
  const int64_t tokens = qkv.size(1), heads = qkv.size(3);
  const double scale = 1.0 / std::sqrt(static_cast<double>(qkv.size(4)));
  at::Tensor q = qkv.select(2, 0).transpose(1, 2);
  if (partners) q = q.unflatten(0, {-1, 2}).flip(1).flatten(0, 1);
  at::Tensor logits = (q * scale).matmul(qkv.select(2, 1).permute({0, 2, 3, 1}));
  if (bias.defined()) logits = logits + bias;
  if (labels.defined()) {
    const at::Tensor mask = attention_mask(labels, logits.options()).unsqueeze(1);
    logits = (logits.view({-1, labels.size(0), heads, tokens, tokens}) + mask).view(logits.sizes());
  }
  return logits.softmax(-1).matmul(qkv.select(2, 2).transpose(1, 2)).transpose(1, 2).flatten(2);
}

at::Tensor attend(const at::Tensor& qkv, const at::Tensor& bias, const at::Tensor& labels, bool partners) {
  if (!qkv.is_cpu() || qkv.scalar_type() == at::kDouble) return attend_plainly(qkv, bias, labels, partners);
  return WindowAttention::apply(qkv, if_defined(bias), if_defined(labels), partners);
}

}  // namespace headroom
