// Tensors as the loader would hand them over.
#pragma once

#include <ATen/DLConvertor.h>
#include <cstdint>
#include <memory>
#include <vector>

#include "data/loader.hpp"
#include "headroom/random.h"

namespace headroom {

// Samples first, first + 1, ... of one epoch; every field begins with the batch axis.
inline Batch loader_batch(std::vector<at::Tensor> fields, int64_t first) {
  struct Held {
    std::vector<at::Tensor> tensors;
    std::vector<std::vector<int64_t>> shapes;
  };
  auto held = std::make_shared<Held>();
  for (const at::Tensor& field : fields) {
    held->tensors.push_back(field.contiguous());
    held->shapes.push_back(field.sizes().vec());
  }
  Batch batch;
  for (size_t i = 0; i < held->tensors.size(); ++i) {
    const at::Tensor& tensor = held->tensors[i];
    batch.fields.push_back({.data = tensor.data_ptr(),
                            .device = {kDLCPU, 0},
                            .ndim = static_cast<int32_t>(tensor.dim()),
                            .dtype = at::getDLDataType(tensor),
                            .shape = held->shapes[i].data(),
                            .strides = nullptr,
                            .byte_offset = 0});
  }
  for (int64_t i = 0; i < fields.at(0).size(0); ++i) {
    batch.index.push_back(static_cast<uint64_t>(first + i));
    batch.key.push_back(hr_sample_key(1, 0, 0, static_cast<uint64_t>(first + i)));
  }
  batch.hold = held;
  return batch;
}

}  // namespace headroom
