// Who holds the process's memory: bytes by owner, now and at their peak. Fed by the tensor allocator, the slots, the
// caches and the plugins; together with slack and other it adds up to what the kernel sees.
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
  activations,  // whatever a step allocates, unless told otherwise
  batches,      // the loader's slots, and batches on their way to the device
  cache,
  metrics,
  checkpoint,
  scratch,  // plugins' own memory (headroom.memory/1), buffers that belong to nobody else
};
inline constexpr size_t owner_count = 9;
std::string_view owner_name(Owner owner);

// What is allocated on this thread until the end of the scope belongs to `owner`. Nests. [any]
class OwnerScope {
 public:
  explicit OwnerScope(Owner owner);
  ~OwnerScope();
  OwnerScope(const OwnerScope&) = delete;
  OwnerScope& operator=(const OwnerScope&) = delete;

 private:
  Owner before_;
};
Owner current_owner();

// [any], without a lock: some 5 ns a call. `delta_bytes` below zero gives back.
void account(Owner owner, int64_t delta_bytes);

struct LedgerReading {
  std::array<int64_t, owner_count> live_bytes{}, peak_bytes{};
  int64_t slack_bytes = 0;      // mapped by the tensor allocator and not lent: free lists, rounding
  int64_t other_bytes = 0;      // U minus all of it: stacks, libraries, oneDNN's own buffers
  int64_t held_bytes = 0;       // U = RssAnon + RssShmem, what the kernel sees
  int64_t peak_held_bytes = 0;  // the largest U that was ever read
  int64_t live(Owner owner) const { return live_bytes[static_cast<size_t>(owner)]; }
};

// Reads /proc; some 30 us. Owners, slack and other add up to held_bytes, and none is negative: what is mapped and not
// written yet belongs to nobody. [any]
LedgerReading read_ledger();

// Somebody has read U: the peak rises to it. [any]
void note_held(int64_t held_bytes);

// "parameters 12.1 MB, gradients 12.1 MB, ..., slack 3.0 MB, other 160.2 MB = 231.4 MB"; owners that hold nothing are
// left out.
std::string ledger_line(const LedgerReading& reading);

// Peaks begin anew from what is held now.
void reset_ledger_peaks();

// The owner's largest live bytes since the last call. [compute]
int64_t take_recent_peak(Owner owner);

// The tensor allocator tells how much it has mapped; slack is that less what it has lent.
void set_mapped_reader(int64_t (*mapped_bytes)(), int64_t (*lent_bytes)());

}  // namespace headroom
