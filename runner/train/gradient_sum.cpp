#include "train/gradient_sum.hpp"

#include <torch/torch.h>

#include "memory/ledger.hpp"
#include "ranks/group.hpp"

namespace headroom {

namespace {

int64_t bytes_of(std::span<const at::Tensor> tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

}  // namespace

GradientSum::GradientSum(std::span<const at::Tensor> gradients) {
  for (const at::Tensor& gradient : gradients) {
    const bool fits = !buckets_.empty() && buckets_.back().front().scalar_type() == gradient.scalar_type() &&
                      bytes_of(buckets_.back()) + static_cast<int64_t>(gradient.nbytes()) <= bucket_bytes;
    if (!fits) buckets_.emplace_back();
    buckets_.back().push_back(gradient);
  }
  const OwnerScope scope(Owner::gradients);
  // They are used one after the other: the largest of a type serves all.
  at::Tensor shared;
  for (const auto& bucket : buckets_) {
    const int64_t elements = bytes_of(bucket) / static_cast<int64_t>(bucket.front().element_size());
    if (bucket.size() == 1 && bucket.front().is_contiguous()) {
      memory_.emplace_back();
      continue;
    }
    const bool serves =
        shared.defined() && shared.scalar_type() == bucket.front().scalar_type() && shared.numel() >= elements;
    if (!serves) shared = at::empty({elements}, bucket.front().options());
    memory_.push_back(shared.narrow(0, 0, elements));
  }
}

void GradientSum::add_up(RankGroup& group) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (!memory_[i].defined()) {
      group.add_up(buckets_[i].front());
      continue;
    }
    const auto part_of = [&, at = int64_t{0}](const at::Tensor& gradient) mutable {
      const at::Tensor part = memory_[i].narrow(0, at, gradient.numel()).view(gradient.sizes());
      at += gradient.numel();
      return part;
    };
    auto part = part_of;
    for (const at::Tensor& gradient : buckets_[i]) part(gradient).copy_(gradient);
    group.add_up(memory_[i]);
    auto sum = part_of;
    for (at::Tensor& gradient : buckets_[i]) gradient.copy_(sum(gradient));
  }
}

}  // namespace headroom
