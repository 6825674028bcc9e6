// What a forward pass changes besides its results: buffers, the generators it draws from, the plugin's state. A copy of
// them is taken before a pass, so that a pass that runs out of memory can be repeated exactly.
#pragma once

#include <ATen/core/Generator.h>
#include <string>
#include <vector>

#include "plugins/torch_model.hpp"
#include "train/retry.hpp"

namespace headroom {

// The sequential generators a model on `device` may draw from: the CPU's, and the device's own where it has one.
std::vector<at::Generator> generators_for(at::Device device);

// [compute]
class ForwardSnapshot {
 public:
  // Allocates the copies.
  ForwardSnapshot(Model& model, at::Device device);

  // Where it throws, nothing is taken.
  void take();
  void discard() { taken_ = false; }
  // As they were at the last take(). Does nothing where nothing is taken.
  void restore();

  // Whether a pass of this model can change any of them; otherwise the other functions do nothing.
  bool is_needed() const { return !buffers_.empty() || !generators_.empty() || model_.has_state(); }

 private:
  Model& model_;
  std::vector<at::Tensor> buffers_, copied_buffers_;
  std::vector<at::Generator> generators_;  // none where the model does not draw from them
  std::vector<at::Tensor> copied_generators_;
  std::string copied_state_;
  bool taken_ = false;
};

// attempt_within_memory() of a pass. false: memory ran out, the snapshot is restored, and `retry` has made it
// possible to go on.
template <class Attempt>
bool attempt_with_snapshot(ForwardSnapshot& snapshot, Retry& retry, const char* doing, int64_t micro_batch,
                           Attempt&& attempt) {
  Shortage shortage;
  const bool fits = attempt_within_memory(shortage, doing, micro_batch, [&] {
    snapshot.take();
    attempt();
  });
  if (fits) return true;
  snapshot.restore();
  retry.after(shortage);
  return false;
}

}  // namespace headroom
