#include "data/slots.hpp"

#include <algorithm>
#include <sys/mman.h>

#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/untouched_pages.hpp"

namespace headroom {

namespace {

constexpr int64_t cache_line = 64;
constexpr uint64_t page = page_bytes, huge_page = 2 << 20;
constexpr int64_t least_backoff = 32, most_backoff = 4096;  // batches

int64_t rounded(int64_t bytes) { return (bytes + cache_line - 1) / cache_line * cache_line; }

uint64_t rounded_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// A large slot is aligned to a huge page and asks for huge pages as far as it fills them (MADV_HUGEPAGE).
std::byte* map_pages(uint64_t bytes) {
  // mmap() aligns to a page, so at most this much lies before the first huge page.
  const uint64_t spare = bytes >= huge_page ? huge_page - page : 0;
  void* memory = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (spare == 0) {
    pages_mapped(PageUse::batches, memory, bytes);
    return static_cast<std::byte*>(memory);
  }
  const auto mapped = reinterpret_cast<uintptr_t>(memory), begin = rounded_up(mapped, huge_page);
  if (begin > mapped) munmap(memory, begin - mapped);
  if (const uint64_t behind = mapped + spare - begin; behind > 0)
    munmap(reinterpret_cast<void*>(begin + bytes), behind);
  madvise(reinterpret_cast<void*>(begin), bytes / huge_page * huge_page, MADV_HUGEPAGE);
  pages_mapped(PageUse::batches, reinterpret_cast<void*>(begin), bytes);
  return reinterpret_cast<std::byte*>(begin);
}

Permit room_for(uint64_t bytes) {
  Permit permit = make_room(static_cast<int64_t>(bytes));
  if (permit) return permit;
  // For the message of the code that catches the exception.
  note_refusal(static_cast<int64_t>(bytes));
  throw std::bad_alloc();
}

}  // namespace

Slot::Slot(std::span<const Field> fields, int64_t samples, const std::vector<bool>& wanted)
    : Slot(fields, samples, wanted, Permit()) {}

Slot::Slot(std::span<const Field> fields, int64_t samples, Permit permit)
    : Slot(fields, samples, {}, std::move(permit)) {}

// An empty permit: it asks for one itself, once it knows the size.
Slot::Slot(std::span<const Field> fields, int64_t samples, const std::vector<bool>& wanted, Permit permit) {
  std::vector<int64_t> offset;
  int64_t total = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool needed = wanted.empty() || wanted[i];
    shapes_.push_back({0});
    shapes_.back().insert(shapes_.back().end(), fields[i].shape.begin(), fields[i].shape.end());
    sample_bytes_.push_back(fields[i].bytes());
    offset.push_back(needed ? total : -1);
    // batch_size and a plugin's shape may be too large together.
    int64_t bytes = 0;
    if (__builtin_mul_overflow(fields[i].bytes(), samples, &bytes)) throw std::bad_alloc();
    if (needed && __builtin_add_overflow(total, rounded(bytes), &total)) throw std::bad_alloc();
    tensors_.push_back(
        {nullptr, {kDLCPU, 0}, static_cast<int32_t>(fields[i].shape.size()) + 1, fields[i].dtype, nullptr, nullptr, 0});
  }
  base_.reserve(fields.size());  // nothing below may throw: the memory has no owner yet
  // Never 0, which mmap() refuses: a source may have no fields that are wanted.
  bytes_ = rounded_up(static_cast<uint64_t>(std::max(total, cache_line)), page);
  // The permit ends after map_pages() has reported the pages, or the same bytes could be granted twice.
  {
    const Permit until_mapped = permit ? std::move(permit) : room_for(bytes_);
    memory_ = map_pages(bytes_);
  }
  account(Owner::batches, static_cast<int64_t>(bytes_));
  for (size_t i = 0; i < fields.size(); ++i) base_.push_back(offset[i] < 0 ? nullptr : memory_ + offset[i]);
}

void Slot::lock_pages(const PageLock& page_lock) {
  if (page_lock.lock != nullptr && page_lock.lock(memory_, bytes_)) unlock_ = page_lock.unlock;
}

int64_t slot_bytes(std::span<const int64_t> sample_bytes, int64_t samples) {
  int64_t bytes = 0;
  for (const int64_t of_field : sample_bytes) bytes += rounded(of_field * samples);
  return static_cast<int64_t>(rounded_up(static_cast<uint64_t>(bytes), page));
}

int64_t slot_bytes(std::span<const Field> fields, int64_t samples) {
  std::vector<int64_t> sample_bytes;
  for (const Field& field : fields) sample_bytes.push_back(field.bytes());
  return slot_bytes(sample_bytes, samples);
}

Slot::~Slot() {
  if (unlock_ != nullptr) unlock_(memory_);
  // Before munmap(): afterwards another thread may map the same addresses and report them.
  pages_unmapped(memory_, bytes_);
  munmap(memory_, bytes_);
  account(Owner::batches, -static_cast<int64_t>(bytes_));
}

std::span<const DLTensor> Slot::tensors(int64_t first, int64_t count) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    shapes_[i][0] = count;
    tensors_[i].shape = shapes_[i].data();
    tensors_[i].data = base_[i] == nullptr ? nullptr : base_[i] + first * sample_bytes_[i];
  }
  return tensors_;
}

SlotPool::SlotPool(std::vector<Field> fields, int64_t samples, size_t most, size_t usual,
                   std::function<void()> returned, const PageLock& page_lock)
    : fields_(std::move(fields)),
      samples_(samples),
      slot_bytes_(slot_bytes(fields_, samples)),
      most_(most),
      usual_(usual),
      page_lock_(page_lock),
      returned_(std::move(returned)) {}

// The stacks are linked through the slots, so that a slot that comes back allocates nothing.
void SlotPool::push(std::unique_ptr<Slot>& stack, std::unique_ptr<Slot> slot) {
  slot->below_ = std::move(stack);
  stack = std::move(slot);
  ++free_count_;
}

std::unique_ptr<Slot> SlotPool::pop(std::unique_ptr<Slot>& stack) {
  std::unique_ptr<Slot> top = std::move(stack);
  stack = std::move(top->below_);
  --free_count_;
  return top;
}

// Others need the memory more: the pool waits before it grows again, twice as long each time.
void SlotPool::back_off() {
  backoff_left_ = backoff_;
  backoff_ = std::min(2 * backoff_, most_backoff);
}

int64_t SlotPool::drop_free(size_t kept, int64_t wanted_bytes) {
  const MutexLock lock(mutex_);
  int64_t bytes = 0;
  while (made_ > kept && bytes < wanted_bytes && (unused_ != nullptr || free_ != nullptr)) {
    const std::unique_ptr<Slot> dropped = pop(unused_ != nullptr ? unused_ : free_);
    bytes += static_cast<int64_t>(dropped->bytes());
    --made_;
  }
  if (bytes > 0 && backoff_left_ == 0) back_off();
  return bytes;
}

bool SlotPool::has_free() const {
  const MutexLock lock(mutex_);
  return has_one();
}

bool SlotPool::has_room() const {
  const MutexLock lock(mutex_);
  return has_one_or_grows();
}

void SlotPool::may_grow_again() {
  const MutexLock lock(mutex_);
  backoff_left_ = 0;
}

bool SlotPool::begin_to_grow() {
  const MutexLock lock(mutex_);
  if (!may_grow()) return false;
  ++made_;
  growing_ = true;
  return true;
}

void SlotPool::grow() {
  std::unique_ptr<Slot> slot;
  try {
    // Without the mutex: this may wait for half a second.
    look_before_growing(slot_bytes_);
    Permit permit = try_to_grow(slot_bytes_);
    if (permit) {
      slot = std::make_unique<Slot>(fields_, samples_, std::move(permit));
      slot->lock_pages(page_lock_);
    }
  } catch (const std::bad_alloc&) {  // the system has less than the limit says; the pool does with what it has
  }
  {
    const MutexLock lock(mutex_);
    growing_ = false;
    if (slot != nullptr) {
      push(unused_, std::move(slot));
      // Memory is there again, so the next wait is shorter.
      backoff_ = std::max(backoff_ / 2, least_backoff);
    } else {
      --made_;
      back_off();
    }
  }
  grown_.notify_all();
}

std::unique_ptr<Slot> SlotPool::take() {
  if (unused_ != nullptr) return pop(unused_);
  return free_ != nullptr ? pop(free_) : nullptr;
}

std::unique_ptr<Slot> SlotPool::reserve() {
  const MutexLock lock(mutex_);
  // One call is one batch, which is what the wait is counted in.
  if (backoff_left_ > 0) --backoff_left_;
  if (owed_ == 0) {
    if (auto slot = take()) return slot;
  }
  ++owed_;
  ++made_;  // the one that lend() makes
  return nullptr;
}

// What reserve() did not have: NULL where no slot was made nor came back since.
std::unique_ptr<Slot> SlotPool::take_owed() {
  std::unique_ptr<Slot> slot;
  bool others_may_go_on = false;
  {
    const MutexLock lock(mutex_);
    while (growing_) grown_.wait(mutex_);
    --owed_;
    slot = take();
    if (slot != nullptr) --made_;  // the one that reserve() counted
    others_may_go_on = has_one_or_grows();
  }
  if (others_may_go_on && returned_) returned_();
  return slot;
}

std::shared_ptr<Slot> SlotPool::lend(std::unique_ptr<Slot> reserved) {
  if (reserved == nullptr) reserved = take_owed();
  if (reserved == nullptr) {
    try {
      reserved = std::make_unique<Slot>(fields_, samples_);
      reserved->lock_pages(page_lock_);
    } catch (...) {
      const MutexLock lock(mutex_);
      // The slot was counted by reserve().
      --made_;
      throw;
    }
  }
  return {reserved.release(),
          [pool = shared_from_this()](Slot* used) { pool->take_back(std::unique_ptr<Slot>(used)); }};
}

// Wakes readers only where none could go on before: a loader that keeps up would be woken for every batch otherwise.
void SlotPool::take_back(std::unique_ptr<Slot> used) {
  bool was_empty = false;
  {
    const MutexLock lock(mutex_);
    was_empty = !has_one_or_grows();
    // Beyond that it is one which a consumer of many batches needed: unmapped below, without the mutex.
    if (free_count_ < most_) {
      push(free_, std::move(used));
    } else {
      --made_;
    }
  }
  if (was_empty && returned_) returned_();
}

}  // namespace headroom
