#include "train/lent_memory.hpp"

#include <algorithm>
#include <map>

namespace headroom {

namespace {

// Less is not worth a line in the log.
constexpr int64_t least_lent_bytes = int64_t{1} << 20;

int64_t spare_bytes(const MemoryPart& part) {
  const int64_t spare = part.limit_bytes - part.peak_bytes - part.peak_bytes / 10;
  return part.is_short || spare < least_lent_bytes ? 0 : spare;
}

}  // namespace

std::vector<int64_t> lent(std::span<const MemoryPart> parts, std::span<const std::string> hosts) {
  std::map<std::string, std::vector<size_t>> ranks_of_host;
  for (size_t rank = 0; rank < parts.size(); ++rank) ranks_of_host[hosts[rank]].push_back(rank);
  std::vector<int64_t> limits;
  for (const MemoryPart& part : parts) limits.push_back(part.limit_bytes);
  for (const auto& [host, ranks] : ranks_of_host) {
    int64_t spare = 0, short_ranks = 0;
    for (const size_t rank : ranks) {
      spare += spare_bytes(parts[rank]);
      short_ranks += parts[rank].is_short ? 1 : 0;
    }
    const auto has_none = [&](size_t rank) { return parts[rank].limit_bytes <= 0; };
    if (short_ranks == 0 || std::ranges::any_of(ranks, has_none)) continue;
    for (const size_t rank : ranks) {
      limits[rank] -= spare_bytes(parts[rank]);
      if (parts[rank].is_short) limits[rank] += spare / short_ranks;
    }
  }
  return limits;
}

}  // namespace headroom
