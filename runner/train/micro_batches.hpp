// A batch in pieces that fit: read, divided and passed through a model as memory allows. Training, evaluation and
// prediction all walk a batch by in_micro_batches(), read one by read_batch(), and repeat a pass that ran out of memory
// from a ForwardSnapshot.
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

// Samples [first, first + count) of a loader batch as tensors on the device, floating fields in `dtype`; they share the
// slot's memory where they can. A GPU copies them while its work is given out; the end of this waits for the copies, so
// that the slot may be written again.
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

// How a pass of one micro-batch ended. again: memory ran out and everything is as before the pass. lost: memory ran out
// where earlier micro-batches are lost with it.
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

// What read() returns. Where memory runs out, `retry` makes room, seek_back() returns to where the batch begins, and
// the batch is read again.
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

// What a forward pass changes besides its results: buffers, the generators it draws from, the plugin's state. A copy of
// them is taken before a pass, so that a pass that runs out of memory can be repeated exactly. [compute]
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
