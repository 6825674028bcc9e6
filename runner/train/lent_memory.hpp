// How the ranks of a run on one machine divide its memory limit anew, once they know what each of them needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace headroom {

struct MemoryPart {
  int64_t limit_bytes = 0;  // 0: none
  int64_t peak_bytes = 0;   // the most it has held
  bool is_short = false;    // it had to do with smaller micro-batches than it would take
};

// The limits of all ranks from here on. A rank that is not short keeps a tenth above its peak, and the ranks of its
// host (as told in `hosts`) that are short have the rest in equal shares. The sum over a host's ranks stays. Where one
// has no limit, or nobody is short, all stay.
std::vector<int64_t> lent(std::span<const MemoryPart> parts, std::span<const std::string> hosts);

}  // namespace headroom
