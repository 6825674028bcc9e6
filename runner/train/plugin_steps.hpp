// Steps of an optimizer plugin, and the buffers that it works on. All buffers exist before the first step, so no step
// allocates.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "plugins/optimizer_plugin.hpp"
#include "train/optimizer.hpp"

namespace headroom {

// [compute]
class PluginSteps {
 public:
  // `plugin` outlives it.
  explicit PluginSteps(const OptimizerPlugin& plugin) : plugin_(plugin) {}

  // Makes the state of one parameter, set to zero. `parameter` outlives the object. Error(bad_input) where the
  // parameter is not one aligned block of host memory.
  void add(const Parameter& parameter, double lr_scale, double weight_decay, int64_t frozen_until_step);
  // Call it once, after the last add().
  void make_scratch();

  // Of all but `without`. Error(plugin) where the plugin fails, writes past the end of a buffer, or leaves values that
  // are not finite; Error(diverged) where these grew beyond all range.
  void step(double lr, int64_t step, std::span<const Parameter* const> without = {});

  // "optimizer/<buffer>/<parameter>", "step/<parameter>": the tensors themselves.
  std::vector<NamedTensor> state() const;

 private:
  // A tensor of the parameter's type with a guard behind it.
  struct Guarded {
    std::string name;
    at::Tensor tensor, guard;
  };
  struct Slot {
    const Parameter* parameter;
    double lr_scale, weight_decay;
    int64_t frozen_until_step;
    std::vector<int64_t> shape;
    hr_trained trained;
    std::vector<Guarded> state;
    std::vector<hr_buffer> native_state;
    at::Tensor updates;  // int64, of this parameter so far
  };
  static Guarded make(std::string name, uint64_t elements, const at::Tensor& like);
  hr_update update_of(Slot& slot, double lr) const;
  void require_sound(const Slot& slot, int64_t step) const;
  void require_guard(const Guarded& buffer, const Parameter* parameter) const;  // NULL: scratch is of none

  const OptimizerPlugin& plugin_;
  std::deque<Slot> slots_;  // never moved: `trained` borrows from its slot
  uint64_t scratch_elements_ = 0;
  Guarded scratch_;
  std::vector<hr_update> updates_;  // of one step
};

}  // namespace headroom
