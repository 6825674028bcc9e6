// Who holds the process's memory and that of its children: bytes by owner, now and at their peak. The tensor allocator,
// the loader's slots, the caches and the plugins report to it. Owners, slack and other add up to U, what the kernel
// counts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

enum class Owner : uint8_t {
  parameters,
  gradients,
  optimizer,
  activations,  // the default: what a step allocates outside any other OwnerScope
  batches,      // the loader's slots, and batches on their way to the device
  cache,
  metrics,
  checkpoint,
  reads,    // what reads decode in
  scratch,  // plugins' own memory (headroom.memory/1), buffers without another owner
  workers,  // child processes (child_watch.hpp)
};
inline constexpr size_t owner_count = 11;
std::string_view owner_name(Owner owner);

// Tensors allocated on this thread until the end of the scope are accounted to `owner`, also when they live longer.
// Scopes nest. [any]
class OwnerScope {
 public:
  explicit OwnerScope(Owner owner);
  ~OwnerScope();
  OwnerScope(const OwnerScope&) = delete;
  OwnerScope& operator=(const OwnerScope&) = delete;

 private:
  Owner before_;
};
Owner current_owner();  // of this thread

// Adds `delta_bytes` (negative: gives back) to an owner. Takes no lock and allocates nothing; some 5 ns. [any]
void account(Owner owner, int64_t delta_bytes);

struct LedgerReading {
  std::array<int64_t, owner_count> live_bytes{}, peak_bytes{};
  int64_t slack_bytes = 0;      // mapped by the tensor allocator and in no tensor: free lists, rounding
  int64_t other_bytes = 0;      // the rest of U: stacks, libraries, oneDNN's own buffers
  int64_t held_bytes = 0;       // U, held_bytes(): what the kernel sees
  int64_t peak_held_bytes = 0;  // the largest U that was ever read
  int64_t live(Owner owner) const { return live_bytes[static_cast<size_t>(owner)]; }
};

// Reads /proc; some 30 us. Owners, slack and other add up to held_bytes, and none is negative. Memory that is mapped
// and not written yet counts for no owner. Allocates nothing. [any]
LedgerReading read_ledger();

// Raises the peak of U to a value that was just read. [any]
void note_held(int64_t held_bytes);

// "parameters 12.1 MB, gradients 12.1 MB, ..., slack 3.0 MB, other 160.2 MB = 231.4 MB"; owners that hold nothing are
// left out.
std::string ledger_line(const LedgerReading& reading);

// Sets all peaks to what is held now. [any]
void reset_ledger_peaks();

// The owner's largest live bytes since the last call for this owner. [compute]
int64_t take_recent_peak(Owner owner);

// How the ledger asks the tensor allocator for what it has mapped and what is in tensors; the difference is slack. Both
// functions are called from any thread.
void set_mapped_reader(int64_t (*mapped_bytes)(), int64_t (*lent_bytes)());

}  // namespace headroom
