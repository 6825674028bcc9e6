// A process whose tensors and heap ask the memory limit, which each test sets.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "memory/budget.hpp"
#include "memory/tensor_allocator.hpp"

namespace headroom {

inline constexpr int64_t mib = 1 << 20;

inline at::Tensor megabytes(int64_t count) { return at::empty({count * mib}, at::kByte).fill_(1); }

class TensorAllocator : public testing::Test {
 protected:
  void SetUp() override {
    install_tensor_allocator();
    at::set_num_threads(1);
    purge_tensor_memory();
  }
  void TearDown() override {
    set_memory_limit(0);
    fail_tensor_allocation(-1);
  }
};

}  // namespace headroom
