#include "train/micro_batches.hpp"

#include <ATen/DLConvertor.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/torch.h>

namespace headroom {

MicroBatchTensors::MicroBatchTensors(const Batch& batch, int64_t first, int64_t count, at::Device device,
                                     at::ScalarType dtype)
    : keys(std::span(batch.key).subspan(static_cast<size_t>(first), static_cast<size_t>(count))) {
  const PhaseScope copying(StepPhase::copy);
  const OwnerScope scope(Owner::batches);
  fields.reserve(batch.fields.size());
  for (const DLTensor& field : batch.fields) {
    if (field.data == nullptr) {
      fields.emplace_back();
      continue;
    }
    const std::vector<int64_t> shape(field.shape, field.shape + field.ndim);
    const auto type = at::toScalarType(field.dtype);
    // The slot is lent as long as a tensor of it lives.
    auto hold = batch.hold;
    const at::Tensor whole = torch::from_blob(
        field.data, shape, [hold](void*) {}, at::TensorOptions(type));
    const at::Tensor part = whole.narrow(0, first, count);
    fields.push_back(part.to(device, at::isFloatingType(type) ? dtype : type, /*non_blocking=*/device.is_cuda()));
  }
  if (!device.is_cuda()) return;
  copied_.emplace(device.type());
  copied_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

MicroBatchTensors::~MicroBatchTensors() {
  if (!copied_) return;
  try {
    copied_->synchronize();
  } catch (const c10::Error&) {  // the device has failed: the next call of it says so
  }
}

}  // namespace headroom
