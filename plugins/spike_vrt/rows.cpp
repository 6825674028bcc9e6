#include "rows.hpp"

#include <ATen/Parallel.h>
#include <cstring>

namespace headroom {
namespace {

at::Tensor gathered(const at::Tensor& x, const at::Tensor& index) {
  const at::Tensor source = x.contiguous();
  const int64_t batch = source.size(0), rows = source.size(1), places = index.size(0);
  if (!x.is_cpu()) {
    const at::Tensor on_device = index.to(x.device());
    return source.index_select(1, on_device.clamp_min(0)) * on_device.ge(0).unsqueeze(1);
  }
  at::Tensor result = at::empty({batch, places, source.size(2)}, source.options());
  const auto row_bytes = static_cast<std::size_t>(source.size(2) * source.element_size());
  const auto* from = static_cast<const char*>(source.const_data_ptr());
  auto* to = static_cast<char*>(result.mutable_data_ptr());
  const int64_t* const rows_of = index.const_data_ptr<int64_t>();
  at::parallel_for(0, batch * places, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = rows_of[i % places];
      char* const place = to + static_cast<std::size_t>(i) * row_bytes;
      if (row < 0) {
        std::memset(place, 0, row_bytes);
      } else {
        std::memcpy(place, from + static_cast<std::size_t>(i / places * rows + row) * row_bytes, row_bytes);
      }
    }
  });
  return result;
}

struct Gather : torch::autograd::Function<Gather> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& index,
                            const at::Tensor& inverse) {
    context->saved_data["inverse"] = inverse;
    return gathered(x, index);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {gathered(gradients[0], context->saved_data["inverse"].toTensor()), {}, {}};
  }
};

}  // namespace

at::Tensor take_rows(const at::Tensor& x, const RowOrder& order) { return Gather::apply(x, order.to, order.from); }

at::Tensor put_back_rows(const at::Tensor& taken, const RowOrder& order) {
  return Gather::apply(taken, order.from, order.to);
}

}  // namespace headroom
