#include "train/forward_snapshot.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

namespace headroom {

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
