// Adds up a window's gradients over the processes of a run, in buckets of many gradients.
#pragma once

#include <ATen/core/Tensor.h>
#include <span>
#include <vector>

namespace headroom {

class RankGroup;

class GradientSum {
 public:
  // Allocates the bucket: add_up() takes no memory of the host's. `gradients` outlive it and are on the CPU.
  explicit GradientSum(std::span<const at::Tensor> gradients);

  // Every rank's gradients become the sum of all ranks': the same bits on each of them.
  void add_up(RankGroup& group);

 private:
  static constexpr int64_t bucket_bytes = 8 << 20;

  std::vector<std::vector<at::Tensor>> buckets_;  // of one type each; one that is large by itself is alone
  std::vector<at::Tensor> memory_;  // for each bucket; undefined: its only gradient is sent from its place
};

}  // namespace headroom
