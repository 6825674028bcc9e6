#include "train/gradient_buckets.hpp"

#include <torch/torch.h>

#include "memory/ledger.hpp"

namespace headroom {

namespace {

constexpr int64_t line_bytes = 64;

// Each gradient begins a cache line, as a tensor of its own would.
int64_t occupied_elements(const at::Tensor& parameter) {
  const auto in_line = line_bytes / static_cast<int64_t>(parameter.element_size());
  return (parameter.numel() + in_line - 1) / in_line * in_line;
}

// A view in autograd's sense would share its bucket's version with all others.
at::Tensor part_of(const at::Tensor& memory, int64_t first, const at::Tensor& like) {
  const at::Tensor part = memory.narrow(0, first, like.numel());
  const at::Tensor shaped =
      like.is_non_overlapping_and_dense() ? part.as_strided(like.sizes(), like.strides()) : part.view(like.sizes());
  return shaped.variable_data();
}

struct Sizes {
  size_t parameters = 0;
  int64_t elements = 0;
};

// Of the bucket that begins with the last of `left`.
Sizes next_bucket(std::span<Parameter* const> left, int64_t most_bytes) {
  Sizes sizes;
  const at::Tensor& first = *left.back()->tensor;
  const auto most = most_bytes / static_cast<int64_t>(first.element_size());
  for (; sizes.parameters < left.size(); ++sizes.parameters) {
    const at::Tensor& next = *left[left.size() - 1 - sizes.parameters]->tensor;
    const bool fits = next.scalar_type() == first.scalar_type() && sizes.elements + occupied_elements(next) <= most;
    if (sizes.parameters > 0 && !fits) break;
    sizes.elements += occupied_elements(next);
  }
  return sizes;
}

}  // namespace

std::vector<GradientBucket> make_gradient_buckets(std::span<Parameter* const> trainable, int64_t most_bytes) {
  const at::NoGradGuard no_grad;
  const OwnerScope scope(Owner::gradients);
  std::vector<GradientBucket> buckets;
  for (auto left = trainable; !left.empty();) {
    const Sizes sizes = next_bucket(left, most_bytes);
    GradientBucket bucket{.memory = at::zeros({sizes.elements}, left.back()->tensor->options().requires_grad(false)),
                          .parameters = {}};
    int64_t first = 0;
    for (size_t i = 0; i < sizes.parameters; ++i) {
      const Parameter* parameter = left[left.size() - 1 - i];
      parameter->tensor->mutable_grad() = part_of(bucket.memory, first, *parameter->tensor);
      first += occupied_elements(*parameter->tensor);
      bucket.parameters.push_back(parameter);
    }
    left = left.first(left.size() - sizes.parameters);
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

}  // namespace headroom
