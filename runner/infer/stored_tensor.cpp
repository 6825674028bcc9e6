#include "infer/stored_tensor.hpp"

#include <ATen/DLConvertor.h>
#include <cstring>

#include "headroom/sdk/shape_text.hpp"
#include "record/mapped_file.hpp"

namespace headroom {

at::Tensor tensor_of(const TensorBytes& stored) {
  at::Tensor tensor = at::empty(stored.shape, at::toScalarType(stored.dtype));
  std::memcpy(tensor.mutable_data_ptr(), stored.data.data(), stored.data.size());
  return tensor;
}

std::string copy_stored(const TensorBytes* stored, const std::string& name, at::Tensor& target) {
  if (stored == nullptr) return "'" + name + "' is missing";
  if (stored->shape != target.sizes().vec()) {
    return "'" + name + "' has shape " + sdk::shape_text(stored->shape) + ", the model needs " +
           sdk::shape_text(target.sizes());
  }
  const at::NoGradGuard no_grad;
  // Through a tensor of its own: bytes of a mapped file need not be aligned, and copy_() converts type and device.
  target.copy_(tensor_of(*stored));
  if (stored->in_file) drop_pages(stored->data);
  return "";
}

}  // namespace headroom
