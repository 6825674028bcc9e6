// What a forward pass leaves behind outside of its results: buffers it updates, numbers it drew, the plugin's state.
#pragma once

#include <ATen/core/Generator.h>
#include <string>
#include <vector>

#include "plugins/torch_model.hpp"
#include "train/retry.hpp"

namespace headroom {

// The sequential generators a model on `device` may draw from: the CPU's, and the device's own where it has one.
std::vector<at::Generator> generators_for(at::Device device);

// Remembered before a pass, so that one that runs out of memory can be repeated exactly. [compute]
class Traces {
 public:
  // Makes room for what must be remembered.
  Traces(Model& model, at::Device device);

  // Copies them as they are now. Where it throws, nothing is remembered.
  void remember();
  void forget() { remembered_ = false; }
  // Makes them again as they were at the last remember(). Does nothing where nothing is remembered.
  void put_back();

  // Whether a pass can leave any; otherwise the others do nothing.
  bool possible() const { return !buffers_.empty() || !generators_.empty() || model_.has_state(); }

 private:
  Model& model_;
  std::vector<at::Tensor> buffers_, remembered_buffers_;
  std::vector<at::Generator> generators_;  // none where the model does not draw from them
  std::vector<at::Tensor> remembered_generators_;
  std::string remembered_state_;
  bool remembered_ = false;
};

// attempt_within_memory() of a pass. false: memory ran out, what it left behind is put back, and `retry` has made it
// possible to go on.
template <class Attempt>
bool attempt_with_traces(Traces& traces, Retry& retry, const char* doing, int64_t micro_batch, Attempt&& attempt) {
  Shortage shortage;
  const bool fits = attempt_within_memory(shortage, doing, micro_batch, [&] {
    traces.remember();
    attempt();
  });
  if (fits) return true;
  traces.put_back();
  retry.after(shortage);
  return false;
}

}  // namespace headroom
