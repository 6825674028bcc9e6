// Memory for batches: made once, touched once, used again and again. First-touched memory costs ten times what reused
// memory does: the slots are made for the first batches, each by the thread that reads into it.
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

// Room for `samples` samples of every field, each field 64-byte aligned; zero at first. One user at a time. Its memory
// comes from the system and goes back there at once.
class Slot {
 public:
  // std::bad_alloc where the memory limit leaves no room. `wanted` (empty: all) tells which fields get memory; the
  // others' tensors have data NULL.
  Slot(std::span<const Field> fields, int64_t samples, const std::vector<bool>& wanted = {});
  // With a permit that was asked for already: takes nothing from others. std::bad_alloc where the system has no more.
  Slot(std::span<const Field> fields, int64_t samples, Permit permit);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  // Tensors of shape [count, field.shape...] from sample `first` on. Their shapes live here until the next call.
  std::span<const DLTensor> tensors(int64_t first, int64_t count);
  uint64_t bytes() const { return bytes_; }  // whole pages

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

// Page-locks the memory of slots for a GPU (data.pin_memory), where the caller has a device: runner/data knows none.
struct PageLock {
  bool (*lock)(void* memory, size_t bytes) = nullptr;  // false: it stays as it is
  void (*unlock)(void* memory) = nullptr;
};
// [control] For slots made from here on.
void set_page_lock(PageLock lock);

// What a slot takes of the system: `samples` samples of fields that have `sample_bytes` each.
int64_t slot_bytes(std::span<const int64_t> sample_bytes, int64_t samples);

// The slots of one loader, made as they are needed. A slot lent out keeps the pool alive, so that a batch may outlive
// its loader. All members [any]; none but grow() and lend() allocates.
class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  // At most `most` slots; the first `usual` are made for the first batches, others once those are not enough.
  // `returned`: called, without a lock, when has_room() has become true because a slot came back; allocates nothing,
  // and lives as long as any slot.
  SlotPool(std::vector<Field> fields, int64_t samples, size_t most, size_t usual, std::function<void()> returned = {});

  // Gives free slots back until `wanted_bytes` are, or `kept` are left, lent ones included. The pool does not grow
  // again for a while. Returns the bytes.
  int64_t drop_free(size_t kept, int64_t wanted_bytes);

  bool has_free() const;
  // Whether a slot is free, or the pool may grow.
  bool has_room() const;
  void may_grow_again();

  // One slot more, where one would be of use and the memory limit leaves room for it without taking anything from
  // others.
  void grow();

  // A free slot, or NULL: lend() then makes one more. Whether to wait instead is for the caller to decide, by
  // has_free() and has_room().
  std::unique_ptr<Slot> reserve();

  // What reserve() gave, for use. It returns when the last copy goes. Where that was NULL it waits for grow() on another
  // thread: there may be room for that one slot only. std::bad_alloc where not even the pressure ladder makes room.
  std::shared_ptr<Slot> lend(std::unique_ptr<Slot> reserved);

 private:
  bool may_grow() const REQUIRES(mutex_) {
    const bool none_is_free = unused_ == nullptr && free_ == nullptr;
    return waits_ == 0 && !growing_ && (made_ < usual_ || (none_is_free && made_ < most_));
  }
  bool has_one() const REQUIRES(mutex_) { return waiting_ == 0 && (unused_ != nullptr || free_ != nullptr); }
  bool has_one_or_grows() const REQUIRES(mutex_) { return has_one() || may_grow(); }
  std::unique_ptr<Slot> take() REQUIRES(mutex_);
  std::unique_ptr<Slot> wait_for_growth();
  static void push(std::unique_ptr<Slot>& stack, std::unique_ptr<Slot> slot);
  static std::unique_ptr<Slot> pop(std::unique_ptr<Slot>& stack);
  void refrain() REQUIRES(mutex_);
  void take_back(std::unique_ptr<Slot> used);

  const std::vector<Field> fields_;
  const int64_t samples_, slot_bytes_;
  const size_t most_, usual_;
  const std::function<void()> returned_;

  mutable Mutex mutex_;
  size_t made_ GUARDED_BY(mutex_) = 0;       // lent ones and those that are being made too
  bool growing_ GUARDED_BY(mutex_) = false;  // one slot at a time: two that see the same need make one too many
  Condition grown_;                          // growing_ is false again
  int waiting_ GUARDED_BY(mutex_) = 0;       // lend() calls that wait for that: what there is then is theirs
  int64_t waits_ GUARDED_BY(mutex_) = 0;     // batches until it may grow again
  int64_t patience_ GUARDED_BY(mutex_) = 32;
  std::unique_ptr<Slot> unused_ GUARDED_BY(mutex_), free_ GUARDED_BY(mutex_);  // stacks; nobody has read into `unused_`
};

}  // namespace headroom
