// How training, evaluation and prediction read a batch and pass it through a model in pieces that fit into memory.
// read_batch() reads it, in_micro_batches() divides it, and a ForwardSnapshot lets a pass that ran out of memory be
// repeated exactly.
#pragma once

#include <ATen/core/Generator.h>
#include <algorithm>
#include <c10/core/Event.h>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/loader.hpp"
#include "plugins/torch_model.hpp"
#include "train/retry.hpp"
#include "train/step_watch.hpp"

namespace headroom {

// Samples [first, first + count) of a loader batch as tensors on the device, floating fields in `dtype`. They share the
// slot's memory where they can. A copy to a GPU runs in the background; the destructor waits for it, so that the slot
// may be written again.
class MicroBatchTensors {
 public:
  MicroBatchTensors(const Batch& batch, int64_t first, int64_t count, at::Device device, at::ScalarType dtype);
  ~MicroBatchTensors();
  MicroBatchTensors(const MicroBatchTensors&) = delete;
  MicroBatchTensors& operator=(const MicroBatchTensors&) = delete;

  std::vector<at::Tensor> fields;
  std::span<const uint64_t> keys;  // of `batch`

 private:
  std::optional<c10::Event> copied_;  // of a GPU
};

// How a pass of one micro-batch ended. `again`: memory ran out, and everything is as before the pass. `lost`: memory
// ran out, and the earlier micro-batches of the window are lost too.
enum class PassEnd { done, again, lost };

// Calls pass(first, count) for the samples of `batch` in order, as many at once as `retry` allows at that moment.
// Returns false as soon as a pass answers lost.
template <class Pass>
[[nodiscard]] bool in_micro_batches(const Batch& batch, const Retry& retry, Pass&& pass) {
  const auto total = static_cast<int64_t>(batch.count());
  for (int64_t first = 0; first < total;) {
    const int64_t count = std::min(retry.size(), total - first);
    const PassEnd end = pass(first, count);
    if (end == PassEnd::lost) return false;
    if (end == PassEnd::done) first += count;
  }
  return true;
}

// Returns what read() returns. Where memory runs out, `retry` makes room, seek_back() returns to the beginning of the
// batch, and the batch is read again.
template <class Read, class SeekBack>
std::optional<Batch> read_batch(Retry& retry, Read&& read, SeekBack&& seek_back) {
  const char* doing = "reading a batch";
  Shortage shortage;
  std::optional<Batch> batch;
  while (!attempt_within_memory(shortage, doing, 0, [&] { batch = read(); })) {
    retry.after(shortage);
    seek_back();
  }
  return batch;
}

// The sequential generators a model on `device` may draw from: the CPU's, and the device's own where it has one.
std::vector<at::Generator> generators_for(at::Device device);

// A copy of what a forward pass changes besides its results: buffers, random generators, the plugin's state. It is
// taken before a pass, so that a pass that runs out of memory can be repeated exactly. [compute]
class ForwardSnapshot {
 public:
  // Allocates the copies.
  ForwardSnapshot(Model& model, at::Device device);

  // Copies the current state. Where it throws, there is no copy.
  void take();
  void discard() { taken_ = false; }
  // Restores what the last take() copied. Does nothing without a copy.
  void restore();

  // Whether a pass of this model can change anything; if not, the other functions do nothing.
  bool is_needed() const { return !buffers_.empty() || !generators_.empty() || model_.has_state(); }

 private:
  Model& model_;
  std::vector<at::Tensor> buffers_, copied_buffers_;
  std::vector<at::Generator> generators_;  // none where the model does not draw from them
  std::vector<at::Tensor> copied_generators_;
  std::string copied_state_;
  bool taken_ = false;
};

// attempt_within_memory() for a pass. Returns false where memory ran out: the snapshot is then restored, and `retry`
// has made room to go on.
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
