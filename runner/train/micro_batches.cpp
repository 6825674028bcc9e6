#include "train/micro_batches.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
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

std::vector<at::Generator> generators_for(at::Device device) {
  std::vector<at::Generator> generators = {at::detail::getDefaultCPUGenerator()};
  if (!device.is_cpu()) generators.push_back(at::globalContext().defaultGenerator(device));
  return generators;
}

ForwardSnapshot::ForwardSnapshot(Model& model, at::Device device) : model_(model) {
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.kind == HR_BUFFER) buffers_.push_back(*parameter.tensor);
  }
  for (const at::Tensor& buffer : buffers_) copied_buffers_.push_back(at::empty_like(buffer));
  if (model.capabilities() & HR_RNG_GENERATOR) generators_ = generators_for(device);
}

void ForwardSnapshot::take() {
  const at::NoGradGuard no_grad;
  taken_ = false;
  for (size_t i = 0; i < buffers_.size(); ++i) copied_buffers_[i].copy_(buffers_[i]);
  std::vector<at::Tensor> states;
  for (const at::Generator& generator : generators_) states.push_back(generator.get_state());
  copied_generators_ = std::move(states);
  if (model_.has_state()) copied_state_ = model_.save_state();
  taken_ = true;
}

void ForwardSnapshot::restore() {
  if (!taken_) return;
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(copied_buffers_[i]);
  for (size_t i = 0; i < generators_.size(); ++i) generators_[i].set_state(copied_generators_[i]);
  if (model_.has_state()) model_.load_state(copied_state_);
}

}  // namespace headroom
