// Blocks of a sample cache, whole and by their keys.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <string>

#include "data/sample_cache.hpp"

namespace headroom {

using Block = SampleCache::Block;

inline bool has(SampleCache& cache, const std::string& key) {
  Block* block = cache.lookup(key);
  if (block != nullptr) cache.release(block);
  return block != nullptr;
}

inline bool put(SampleCache& cache, const std::string& key, uint64_t bytes, CachePolicy policy = CachePolicy::lru) {
  Block* block = cache.reserve(key, bytes, policy);
  if (block == nullptr) return false;
  std::memset(block->memory.data(), key.back(), bytes);
  cache.publish(block);
  cache.release(block);
  return true;
}

}  // namespace headroom
