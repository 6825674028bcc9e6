#include "memory/tensor_allocator.hpp"

#include <algorithm>
#include <atomic>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <new>
#include <pthread.h>

#include "memory/allocation_table.hpp"
#include "memory/arena.hpp"
#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/process_memory.hpp"
#include "memory/relief.hpp"

namespace headroom {

namespace {

constexpr int most_tries = 8;
constexpr int64_t table_growth_bytes = int64_t{1} << 20;

std::atomic<int64_t> lent{0}, allocations{0};
std::atomic<int64_t> fail_at{-1};
std::atomic<std::string (*)(int64_t)> refusal_sentence{nullptr};

AllocationTable& table() {
  static auto* made = [] {
    pthread_atfork([] { table().hold(); }, [] { table().let_go(); }, [] { table().let_go(); });
    return new AllocationTable;  // outlives every tensor, also static ones
  }();
  return *made;
}

// True once, for the allocation that was chosen to fail.
bool must_fail() {
  if (fail_at.load(std::memory_order_relaxed) < 0) return false;
  return fail_at.fetch_sub(1, std::memory_order_relaxed) == 0;
}

[[noreturn]] void refuse(size_t bytes) {
  note_tensor_refusal(static_cast<int64_t>(bytes));
  if (const auto sentence = refusal_sentence.load())
    TORCH_CHECK_WITH(OutOfMemoryError, false, sentence(static_cast<int64_t>(bytes)));
  TORCH_CHECK_WITH(OutOfMemoryError, false, "no memory for ", bytes, " bytes within the limit of ", memory_limit(),
                   " bytes");
  __builtin_unreachable();
}

// Mapped and unused. Some of it may be fragments, so a tensor may still need new memory.
int64_t free_bytes() { return arena::mapped_bytes() - lent.load(std::memory_order_relaxed); }

// The heap has used what was kept for it: it gets it back before more of it is needed, or the tensor is refused.
void restore_heap_cushion(size_t bytes, bool must_pass) {
  if (!take_heap_growth()) return;
  const int64_t wanted = heap_shortage().bytes;
  if (wanted == 0) return;
  give_back_memory(wanted);
  if (!must_pass && heap_shortage().is_severe) refuse(bytes);
}

// False: there was no memory for a larger table.
bool is_entered(void* data, int64_t occupied) {
  try {
    table().insert(data, static_cast<uint64_t>(occupied), current_owner());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void* take(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const bool must_pass = EssentialAllocations::under_way() && bytes <= EssentialAllocations::most_tensor_bytes;
  if (!must_pass && must_fail()) refuse(bytes);
  restore_heap_cushion(bytes, must_pass);
  look_before_growing(static_cast<int64_t>(bytes) - free_bytes());
  void* data = arena::allocate(bytes, must_pass);
  // What came back others may take meanwhile: readers go on.
  for (int tries = 0; data == nullptr && tries < most_tries; ++tries) {
    if (give_back_memory(static_cast<int64_t>(bytes)) == 0) break;
    data = arena::allocate(bytes, must_pass);
  }
  if (data == nullptr) refuse(bytes);
  const auto occupied = static_cast<int64_t>(arena::occupied_bytes(data, bytes));
  if (!is_entered(data, occupied) && (give_back_memory(table_growth_bytes) == 0 || !is_entered(data, occupied))) {
    arena::release(data);
    refuse(bytes);
  }
  lent.fetch_add(occupied, std::memory_order_relaxed);
  account(current_owner(), occupied);
  return data;
}

void give_back(void* data) {
  if (data == nullptr) return;
  const AllocationTable::Entry entry = table().take(data);
  const auto bytes = static_cast<int64_t>(entry.bytes);
  account(static_cast<Owner>(entry.owner), -bytes);
  lent.fetch_sub(bytes, std::memory_order_relaxed);
  arena::release(data);
}

// Of tensors, and where that is not enough what malloc keeps for others.
int64_t purge_all(int64_t wanted_bytes) {
  const int64_t returned = arena::purge();
  if (returned >= wanted_bytes) return returned;
  const int64_t before = own_held_bytes();
  arena::purge_heap();
  return returned + std::max<int64_t>(before - own_held_bytes(), 0);
}

// Called again and again until the memory is there or this throws. What can never fit costs nobody anything; anything
// else is asked for in one go, and once more only where something came.
void make_room_for_new() {
  const int64_t refused = arena::take_refused_heap_bytes(), bound = memory_bound();
  const auto wanted = std::max(refused, static_cast<int64_t>(EssentialAllocations::most_tensor_bytes));
  if ((bound > 0 && refused > bound) || give_back_memory(wanted) == 0) throw std::bad_alloc();
}

class TensorAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes > 0 ? take(bytes) : nullptr;
    // Pointer and context are equal: c10::Allocator::raw_allocate() asserts it.
    return {data, data, &give_back, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

void install_tensor_allocator() {
  static const bool installed = [] {
    static TensorAllocator allocator;
    table();
    arena::bind_heap(&give_back_memory);
    set_mapped_reader(&arena::mapped_bytes, [] { return lent.load(std::memory_order_relaxed); });
    // The highest priority: an allocator of a lower one does not replace it.
    c10::SetCPUAllocator(&allocator, /*priority=*/255);
    static const RungRegistration purge =
        add_rung({.name = "free memory", .order = 300, .give_back = [](int64_t wanted) { return purge_all(wanted); }});
    std::set_new_handler(&make_room_for_new);
    return true;
  }();
  (void)installed;
}

void set_refusal_sentence(std::string (*sentence)(int64_t bytes)) { refusal_sentence = sentence; }

int64_t purge_tensor_memory(c10::Device device) {
  if (device.is_cpu()) return arena::purge();
  const int64_t before = read_device_memory(device)->reserved_bytes;
  at::getDeviceAllocator(device.type())->emptyCache();
  return before - read_device_memory(device)->reserved_bytes;
}

std::optional<DeviceMemory> read_device_memory(c10::Device device) {
  if (device.is_cpu()) return std::nullopt;
  constexpr auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto statistics = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return DeviceMemory{statistics.allocated_bytes[all].current, statistics.reserved_bytes[all].current};
}

void purge_heap() { arena::purge_heap(); }

int64_t tensor_allocations() { return allocations; }
void fail_tensor_allocation(int64_t skip) { fail_at = skip; }

}  // namespace headroom
