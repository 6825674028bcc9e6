#include "loader_library/exported_batch.hpp"

#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "error.hpp"

namespace headroom {

ExportedBatch::ExportedBatch(Batch batch, HeldCount held)
    : batch_(std::make_unique<const Batch>(std::move(batch))), held_(std::move(held)), process_(getpid()) {
  ++*held_;
}

ExportedBatch::~ExportedBatch() {
  if (getpid() != process_) {
    (void)batch_.release();
    return;
  }
  batch_.reset();
  --*held_;
}

namespace {

// What the deleter of a tensor frees: the tensor is in it.
template <class Managed>
struct Export {
  Managed managed{};
  std::shared_ptr<const ExportedBatch> batch;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
Managed* make_export(const std::shared_ptr<const ExportedBatch>& batch, uint32_t field) {
  const std::vector<DLTensor>& fields = batch->batch().fields;
  if (field >= fields.size()) {
    throw Error(
        Exit::bad_input, "loader",
        "there is no field " + std::to_string(field) + "; the batch has " + std::to_string(fields.size()) + " fields");
  }
  auto made = std::make_unique<Export<Managed>>();
  const DLTensor& tensor = fields[field];
  made->batch = batch;
  made->shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  made->strides.resize(made->shape.size());
  int64_t stride = 1;
  for (size_t axis = made->shape.size(); axis-- > 0; stride *= made->shape[axis]) made->strides[axis] = stride;
  made->managed.dl_tensor = tensor;
  made->managed.dl_tensor.shape = made->shape.data();
  made->managed.dl_tensor.strides = made->strides.data();
  made->managed.manager_ctx = made.get();
  made->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->manager_ctx); };
  return &made.release()->managed;
}

}  // namespace

DLManagedTensorVersioned* export_field(const std::shared_ptr<const ExportedBatch>& batch, uint32_t field) {
  DLManagedTensorVersioned* tensor = make_export<DLManagedTensorVersioned>(batch, field);
  tensor->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  tensor->flags = 0;
  return tensor;
}

DLManagedTensor* export_field_unversioned(const std::shared_ptr<const ExportedBatch>& batch, uint32_t field) {
  return make_export<DLManagedTensor>(batch, field);
}

}  // namespace headroom
