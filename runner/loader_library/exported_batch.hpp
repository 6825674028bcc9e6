// A loader's batch as DLPack tensors, which keep its slot for as long as one of them lives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <sys/types.h>

#include "data/loader.hpp"
#include "headroom/dlpack.h"

namespace headroom {

// How many batches of a loader are held. Shared by the loader and its batches.
using HeldCount = std::shared_ptr<std::atomic<uint64_t>>;

// All const members [any]. In a forked child its destructor frees nothing: the locks behind a slot may be those of a
// thread that is not there.
class ExportedBatch {
 public:
  ExportedBatch(Batch batch, HeldCount held);
  ~ExportedBatch();
  ExportedBatch(const ExportedBatch&) = delete;
  ExportedBatch& operator=(const ExportedBatch&) = delete;

  const Batch& batch() const { return *batch_; }

 private:
  std::unique_ptr<const Batch> batch_;
  const HeldCount held_;
  const pid_t process_;
};

// Field `field` of the batch. Its deleter may be called in any thread. Error(bad_input) where there is no such field;
// std::bad_alloc.
DLManagedTensorVersioned* export_field(const std::shared_ptr<const ExportedBatch>& batch, uint32_t field);
DLManagedTensor* export_field_unversioned(const std::shared_ptr<const ExportedBatch>& batch, uint32_t field);

}  // namespace headroom
