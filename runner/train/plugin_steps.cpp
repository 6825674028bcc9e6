#include "train/plugin_steps.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "headroom/sdk/finite.hpp"
#include "memory/ledger.hpp"

namespace headroom {

namespace {

constexpr uintptr_t buffer_alignment_bytes = 64;  // as optimizer.h promises
// One cache line at least, whatever the type.
constexpr int64_t guard_elements = 16;
constexpr double guard_value = -8.126464e+03;  // exact in float32

bool lies_whole(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.is_contiguous() &&
         reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % buffer_alignment_bytes == 0 &&
         (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble);
}

// The index of the first value that is NaN or infinite.
std::optional<size_t> first_not_finite(const at::Tensor& tensor) {
  const auto count = static_cast<size_t>(tensor.numel());
  return tensor.scalar_type() == at::kFloat
             ? sdk::first_not_finite(std::span<const float>(tensor.const_data_ptr<float>(), count))
             : sdk::first_not_finite(std::span<const double>(tensor.const_data_ptr<double>(), count));
}

// Whether a value is infinite, or so large that the next ones will be. NaN says nothing of where it came from.
template <class T>
bool has_outgrown(const at::Tensor& tensor) {
  constexpr T most = static_cast<T>(1e15);
  const T* data = tensor.const_data_ptr<T>();
  return std::any_of(data, data + tensor.numel(), [](T value) { return std::abs(value) > most; });
}

bool has_outgrown(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat ? has_outgrown<float>(tensor) : has_outgrown<double>(tensor);
}

template <class T>
bool is_whole(const at::Tensor& guard) {
  const T* data = guard.const_data_ptr<T>();
  return std::all_of(data, data + guard_elements, [](T value) { return value == static_cast<T>(guard_value); });
}

std::string of_parameter(const Parameter& parameter) { return " of parameter '" + parameter.name + "'"; }

hr_buffer buffer_of(const at::Tensor& tensor) {
  return {const_cast<void*>(tensor.const_data_ptr()), static_cast<uint64_t>(tensor.numel())};
}

}  // namespace

PluginSteps::Guarded PluginSteps::make(std::string name, uint64_t elements, const at::Tensor& like) {
  const auto count = static_cast<int64_t>(elements);
  const at::Tensor whole = at::zeros({count + guard_elements}, like.options().requires_grad(false));
  Guarded made{std::move(name), whole.narrow(0, 0, count), whole.narrow(0, count, guard_elements)};
  made.guard.fill_(guard_value);
  return made;
}

void PluginSteps::add(const Parameter& parameter, double lr_scale, double weight_decay, int64_t frozen_until_step) {
  const at::Tensor& tensor = *parameter.tensor;
  if (tensor.numel() == 0) return;  // nothing to update, and a plugin should not have to think of it
  if (!lies_whole(tensor)) {
    throw Error(Exit::bad_input, "train.optimizer.name",
                "optimizer '" + plugin_.id() +
                    "' is a plugin's, which takes parameters of float32 or float64 that lie "
                    "contiguous in host memory, 64-byte aligned; '" +
                    parameter.name +
                    "' does not: set experiment.device = \"cpu\", have the "
                    "model call contiguous() on it, or clone() on a part of a tensor, or use another optimizer");
  }
  Slot& slot = slots_.emplace_back();
  slot.parameter = &parameter;
  slot.lr_scale = lr_scale;
  slot.weight_decay = weight_decay;
  slot.frozen_until_step = frozen_until_step;
  slot.shape = tensor.sizes().vec();
  slot.trained = {sizeof(hr_trained),
                  static_cast<int32_t>(slot.shape.size()),
                  parameter.name.c_str(),
                  parameter.group.empty() ? nullptr : parameter.group.c_str(),
                  {kDLFloat, static_cast<uint8_t>(8 * tensor.element_size()), 1},
                  0u,
                  slot.shape.data(),
                  static_cast<uint64_t>(tensor.numel())};
  const OptimizerPlugin::Needs needs = plugin_.needs(slot.trained);
  for (const OptimizerPlugin::Buffer& buffer : needs.state)
    slot.state.push_back(make(buffer.name, buffer.elements, tensor));
  for (const Guarded& buffer : slot.state) slot.native_state.push_back(buffer_of(buffer.tensor));
  slot.updates = at::zeros({}, at::TensorOptions(at::kCPU).dtype(at::kLong));
  scratch_elements_ = std::max(scratch_elements_, needs.scratch);
}

void PluginSteps::make_scratch() {
  updates_.reserve(slots_.size());
  if (slots_.empty()) return;
  const OwnerScope scope(Owner::scratch);
  scratch_ = make("scratch", scratch_elements_, *slots_.front().parameter->tensor);
}

// Addresses are those of now: with EMA the model's weights change place around an evaluation.
hr_update PluginSteps::update_of(Slot& slot, double lr) const {
  const at::Tensor& values = *slot.parameter->tensor;
  const at::Tensor& gradient = values.grad();
  if (!lies_whole(values) || !gradient.defined() || !lies_whole(gradient) || gradient.numel() != values.numel()) {
    throw Error(Exit::plugin, plugin_.id(),
                "parameter '" + slot.parameter->name +
                    "' or its gradient no longer lies contiguous and aligned in host memory: the "
                    "model has replaced it");
  }
  return {sizeof(hr_update),
          0u,
          &slot.trained,
          lr * slot.lr_scale,
          slot.weight_decay,
          *slot.updates.const_data_ptr<int64_t>(),
          buffer_of(values),
          buffer_of(gradient),
          slot.native_state.data(),
          slot.native_state.size(),
          buffer_of(scratch_.tensor)};
}

void PluginSteps::step(double lr, int64_t step, std::span<const Parameter* const> without) {
  const auto is_updated = [&](const Slot& slot) {
    return slot.frozen_until_step <= step && std::ranges::find(without, slot.parameter) == without.end();
  };
  updates_.clear();
  for (Slot& slot : slots_) {
    if (is_updated(slot)) updates_.push_back(update_of(slot, lr));
  }
  if (updates_.empty()) return;
  plugin_.step(step, updates_);
  require_guard(scratch_, nullptr);
  for (Slot& slot : slots_) {
    if (!is_updated(slot)) continue;
    require_sound(slot, step);
    ++*slot.updates.mutable_data_ptr<int64_t>();
  }
}

void PluginSteps::require_sound(const Slot& slot, int64_t step) const {
  for (const Guarded& buffer : slot.state) require_guard(buffer, slot.parameter);
  const std::optional<size_t> at = first_not_finite(*slot.parameter->tensor);
  if (!at) return;
  // A run that grew out of the type's range has diverged, as with an optimizer of ours.
  const bool diverged =
      has_outgrown(*slot.parameter->tensor) ||
      std::ranges::any_of(slot.state, [](const Guarded& buffer) { return has_outgrown(buffer.tensor); });
  throw Error(diverged ? Exit::diverged : Exit::plugin, plugin_.id(),
              "optimizer step " + std::to_string(step + 1) + " left element " + std::to_string(*at) +
                  of_parameter(*slot.parameter) +
                  " not finite (NaN or infinity) although the gradients are finite: lower train.optimizer.lr, or it is "
                  "a bug of the plugin");
}

void PluginSteps::require_guard(const Guarded& buffer, const Parameter* parameter) const {
  const bool whole =
      buffer.guard.scalar_type() == at::kFloat ? is_whole<float>(buffer.guard) : is_whole<double>(buffer.guard);
  if (whole) return;
  throw Error(Exit::plugin, plugin_.id(),
              "a step wrote past the " + std::to_string(buffer.tensor.numel()) + " elements of its " +
                  (parameter == nullptr ? "scratch" : "buffer '" + buffer.name + "'" + of_parameter(*parameter)) +
                  "; needs() must ask for what a step uses: this is a bug of the plugin");
}

std::vector<NamedTensor> PluginSteps::state() const {
  std::vector<NamedTensor> state;
  for (const Slot& slot : slots_) {
    const std::string& name = slot.parameter->name;
    for (const Guarded& buffer : slot.state) state.push_back({"optimizer/" + buffer.name + "/" + name, buffer.tensor});
    state.push_back({"step/" + name, slot.updates});
  }
  return state;
}

}  // namespace headroom
