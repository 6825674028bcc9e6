#include "data/cache_service.hpp"

#include <atomic>

#include "data/sample_cache.hpp"
#include "plugins/service_arguments.hpp"

namespace headroom {

namespace {

using Block = SampleCache::Block;

std::atomic<CachePolicy> policy{CachePolicy::lru};
std::atomic<bool> used{false};

SampleCache& cache() { return SampleCache::shared(); }

void hand_out(Block& block, hr_cache_block& out) {
  out = {sizeof(hr_cache_block), 0, block.memory.data(), block.bytes, &block};
}

[[noreturn]] void throw_no_room(uint64_t bytes) {
  throw sdk::Error(HR_OUT_OF_MEMORY, std::to_string(bytes) + " bytes do not fit into the cache (data.cache_size)");
}

hr_status lookup(const hr_host*, const char* key, hr_cache_block* out, hr_error* error) HR_NOEXCEPT {
  bool hit = false;
  used = true;
  const hr_status status = sdk::guard(error, [&] {
    hr_cache_block& result = out_of(out);
    Block* block = cache().lookup(text(key, "key"));
    hit = block != nullptr;
    if (hit) hand_out(*block, result);
  });
  return status == HR_OK && !hit ? sdk::fail(error, HR_NOT_FOUND, "not in the cache") : status;
}

hr_status reserve(const hr_host*, const char* key, uint64_t bytes, hr_cache_block* out, hr_error* error) HR_NOEXCEPT {
  used = true;
  return sdk::guard(error, [&] {
    hr_cache_block& result = out_of(out);
    Block* block = cache().reserve(text(key, "key"), bytes, policy);
    if (block == nullptr) throw_no_room(bytes);
    hand_out(*block, result);
  });
}

hr_status acquire(const hr_host*, const char* key, uint64_t bytes, hr_cache_block* out, int32_t* fresh,
                  hr_error* error) HR_NOEXCEPT {
  used = true;
  return sdk::guard(error, [&] {
    hr_cache_block& result = out_of(out);
    int32_t& is_fresh = out_of(fresh);
    Block* block = cache().acquire(text(key, "key"), bytes, policy);
    if (block == nullptr) throw_no_room(bytes);
    is_fresh = block->published ? 0 : 1;
    hand_out(*block, result);
  });
}

void publish(const hr_host*, hr_cache_block* block) HR_NOEXCEPT {
  if (block != nullptr && block->reference != nullptr) cache().publish(static_cast<Block*>(block->reference));
}

void release(const hr_host*, hr_cache_block* block) HR_NOEXCEPT {
  if (block == nullptr || block->reference == nullptr) return;
  cache().release(static_cast<Block*>(block->reference));
  *block = {sizeof(hr_cache_block), 0, nullptr, 0, nullptr};
}

}  // namespace

const hr_cache& cache_service() {
  static const hr_cache table{sizeof(hr_cache), 0, lookup, reserve, publish, release, acquire};
  return table;
}

void set_cache_limit(int64_t bytes) { cache().set_limit(bytes > 0 ? static_cast<uint64_t>(bytes) : 0); }

void set_plugin_cache_policy(CachePolicy of_plugins) { policy = of_plugins; }

bool plugins_use_cache() { return used; }

}  // namespace headroom
