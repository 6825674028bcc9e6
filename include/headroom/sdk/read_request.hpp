// The argument of a source's read(): which samples, and the slots to fill. Needs no LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headroom/sdk/error.hpp"
#include "headroom/sdk/fields.hpp"

namespace headroom::sdk {

// One read of count() samples. Borrowed for the call.
class ReadRequest {
 public:
  explicit ReadRequest(const hr_read* request) : request_(request) {}

  uint32_t split() const { return request_->split; }
  uint64_t count() const { return request_->count; }
  uint64_t index(uint64_t i) const { return request_->index[i]; }
  uint64_t key(uint64_t i) const { return request_->key[i]; }
  // True: draw jitter, rotation and crops from key(i). False: draw nothing.
  bool augment() const { return (request_->flags & HR_READ_AUGMENT) != 0; }
  bool wanted(uint32_t field) const { return request_->fields[field].data != nullptr; }

  // The slot of `field` of the i-th sample: one value an element of the field; empty if the field is not wanted. T must
  // be the type that the field declares, else Error(HR_INTERNAL).
  template <class T>
  std::span<T> slot(uint32_t field, uint64_t i) const {
    if (field >= request_->field_count) throw Error(HR_INTERNAL, "the plugin fills a field it does not have");
    const DLTensor& tensor = request_->fields[field];
    if (tensor.data == nullptr) return {};
    if (!same_type(tensor.dtype, dtype_of<T>()))
      throw Error(HR_INTERNAL, "the plugin fills a field with another type than it declared");
    uint64_t elements = 1;
    for (int32_t axis = 1; axis < tensor.ndim; ++axis) elements *= static_cast<uint64_t>(tensor.shape[axis]);
    return {reinterpret_cast<T*>(static_cast<char*>(tensor.data) + tensor.byte_offset) + i * elements, elements};
  }

  // The same as bytes, for a plugin that knows its dtypes at run time only.
  std::span<std::byte> bytes(uint32_t field, uint64_t i) const {
    if (field >= request_->field_count) throw Error(HR_INTERNAL, "the plugin fills a field it does not have");
    const DLTensor& tensor = request_->fields[field];
    if (tensor.data == nullptr) return {};
    uint64_t count = tensor.dtype.bits / 8u;
    for (int32_t axis = 1; axis < tensor.ndim; ++axis) count *= static_cast<uint64_t>(tensor.shape[axis]);
    return {static_cast<std::byte*>(tensor.data) + tensor.byte_offset + i * count, count};
  }

 private:
  const hr_read* request_;
};

}  // namespace headroom::sdk
