// Memory for batches. The first touch of a page costs ten times as much as its reuse, so slots are kept and reused.
// Each is made on the thread that first reads into it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "memory/budget.hpp"
#include "mutex.hpp"
#include "plugins/source.hpp"

namespace headroom {

// Page-locks the memory of slots for a GPU (data.pin_memory). Comes from a caller that has a device; runner/data knows
// none.
struct PageLock {
  bool (*lock)(void* memory, size_t bytes) = nullptr;  // false: it stays as it is
  void (*unlock)(void* memory) = nullptr;
};

// Memory for `samples` samples of every field, one field after the other, each 64-byte aligned; zero at first. Mapped
// from the system and unmapped by the destructor, on the ledger as batches. One user at a time.
class Slot {
 public:
  // std::bad_alloc where the memory limit leaves no room even after others gave memory back. `wanted` (empty: all) says
  // which fields get memory; the tensors of the others have data NULL.
  Slot(std::span<const Field> fields, int64_t samples, const std::vector<bool>& wanted = {});
  // With a permit of the memory limit that the caller already has. std::bad_alloc where the system has no more.
  Slot(std::span<const Field> fields, int64_t samples, Permit permit);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  // Tensors of shape [count, field.shape...], from sample `first` on. Valid until the next call: they share its arrays.
  std::span<const DLTensor> tensors(int64_t first, int64_t count);
  uint64_t bytes() const { return bytes_; }  // whole pages
  // Once, until the slot is destroyed. Without functions in `page_lock` it does nothing.
  void lock_pages(const PageLock& page_lock);

 private:
  Slot(std::span<const Field> fields, int64_t samples, const std::vector<bool>& wanted, Permit permit);

  std::vector<std::vector<int64_t>> shapes_;
  std::vector<int64_t> sample_bytes_;
  std::vector<std::byte*> base_;  // of each field; NULL: not wanted
  std::vector<DLTensor> tensors_;
  uint64_t bytes_ = 0;
  std::byte* memory_ = nullptr;
  void (*unlock_)(void* memory) = nullptr;  // where it is page-locked

  friend class SlotPool;
  std::unique_ptr<Slot> below_;  // in a stack of free ones
};

// The bytes that a slot takes from the system, for `samples` samples of fields of `sample_bytes` each.
int64_t slot_bytes(std::span<const int64_t> sample_bytes, int64_t samples);
int64_t slot_bytes(std::span<const Field> fields, int64_t samples);

// The slots of one loader, made as they are needed. A slot that is lent keeps the pool alive, so a batch may outlive
// its loader. Of slots that come back from a consumer who held many, the pool keeps `most` free ones. All members
// [any]; only grow() and lend() allocate.
class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  // At most `most` slots. The first `usual` are made without need; a further one only where none is free. `returned` is
  // called, without the mutex, when has_room() has become true because a slot came back. It must not allocate, and must
  // be callable as long as any slot lives.
  SlotPool(std::vector<Field> fields, int64_t samples, size_t most, size_t usual, std::function<void()> returned = {},
           const PageLock& page_lock = {});

  // Frees free slots until `wanted_bytes` bytes are freed or `kept` slots are left, lent ones included. Returns the
  // bytes. If there are any, the pool does not grow for some batches.
  int64_t drop_free(size_t kept, int64_t wanted_bytes);

  bool has_free() const;
  // Whether a slot is free or the pool may grow.
  bool has_room() const;
  // Ends the wait after drop_free(), or after a slot that found no room.
  void may_grow_again();

  // Whether the caller is to make one more slot, by grow(). A caller who decides by has_room() asks both under one lock
  // of its own: once the free slot that it saw is gone, the pool would make one more for nobody.
  bool begin_to_grow();
  // REQUIRES begin_to_grow(). Makes the slot, if the memory limit has room for it without asking others to give back.
  void grow();

  // A free slot; or NULL, and then lend(NULL) must follow, which makes one more. A caller who would rather wait asks
  // has_free() first.
  std::unique_ptr<Slot> reserve();

  // Lends what reserve() returned: it comes back when the last copy of the pointer is destroyed. For NULL it takes the
  // slot that grow() is making or has made since reserve(), or one that came back since then, as there may be room for
  // only one slot; otherwise it makes one. std::bad_alloc where the memory limit has no room even after others released
  // memory.
  std::shared_ptr<Slot> lend(std::unique_ptr<Slot> reserved);

 private:
  bool may_grow() const REQUIRES(mutex_) {
    const bool none_is_free = unused_ == nullptr && free_ == nullptr;
    return backoff_left_ == 0 && !growing_ && (made_ < usual_ || (none_is_free && made_ < most_));
  }
  bool has_one() const REQUIRES(mutex_) { return owed_ == 0 && (unused_ != nullptr || free_ != nullptr); }
  bool has_one_or_grows() const REQUIRES(mutex_) { return has_one() || may_grow(); }
  std::unique_ptr<Slot> take() REQUIRES(mutex_);
  std::unique_ptr<Slot> take_owed();
  void push(std::unique_ptr<Slot>& stack, std::unique_ptr<Slot> slot) REQUIRES(mutex_);
  std::unique_ptr<Slot> pop(std::unique_ptr<Slot>& stack) REQUIRES(mutex_);
  void back_off() REQUIRES(mutex_);
  void take_back(std::unique_ptr<Slot> used);

  const std::vector<Field> fields_;
  const int64_t samples_, slot_bytes_;
  const size_t most_, usual_;
  const PageLock page_lock_;
  const std::function<void()> returned_;

  // made_ counts free slots, lent ones, and those that are being made. One slot is made by grow() at a time: two
  // threads that see the same need would make one too many.
  mutable Mutex mutex_;
  size_t made_ GUARDED_BY(mutex_) = 0;
  bool growing_ GUARDED_BY(mutex_) = false;
  Condition grown_;                              // growing_ is false again
  int owed_ GUARDED_BY(mutex_) = 0;              // calls of lend(NULL) to come, which get the next free slots
  int64_t backoff_left_ GUARDED_BY(mutex_) = 0;  // batches until the pool may grow again
  int64_t backoff_ GUARDED_BY(mutex_) = 32;      // what backoff_left_ is set to next time; doubles, as a back-off
  std::unique_ptr<Slot> unused_ GUARDED_BY(mutex_), free_ GUARDED_BY(mutex_);  // stacks; unused_: never read into
  size_t free_count_ GUARDED_BY(mutex_) = 0;                                   // slots in both
};

}  // namespace headroom
