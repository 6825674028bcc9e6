#include "data/cache_session.hpp"

#include <atomic>
#include <cstring>

#include "plugins/service_arguments.hpp"

namespace headroom {

namespace {

using Block = SampleCache::Block;

std::shared_ptr<CacheSession> cache_used_by(const hr_host* host) {
  std::shared_ptr<CacheSession> cache = cache_of(*session_of(host));
  cache->plugins_use_it = true;
  return cache;
}

// The reference is the block itself: a node of a list, which does not move.
void hand_out(Block& block, hr_cache_block& out) {
  out = {sizeof(hr_cache_block), 0, block.memory.data(), block.bytes, &block};
}

[[noreturn]] void throw_no_room(uint64_t bytes) {
  throw sdk::Error(HR_OUT_OF_MEMORY, std::to_string(bytes) + " bytes do not fit into the cache (data.cache_size)");
}

hr_status lookup(const hr_host* host, const char* key, hr_cache_block* out, hr_error* error) HR_NOEXCEPT {
  bool hit = false;
  const hr_status status = sdk::guard(error, [&] {
    // Before a block is referenced: if this throws later, the block would not be released.
    hr_cache_block& result = out_of(out);
    Block* block = cache_used_by(host)->blocks.lookup(text(key, "key"));
    hit = block != nullptr;
    if (hit) hand_out(*block, result);
  });
  // A miss is common, and to throw would be slow.
  return status == HR_OK && !hit ? sdk::fail(error, HR_NOT_FOUND, "not in the cache") : status;
}

hr_status reserve(const hr_host* host, const char* key, uint64_t bytes, hr_cache_block* out,
                  hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    hr_cache_block& result = out_of(out);
    const auto cache = cache_used_by(host);
    Block* block = cache->blocks.reserve(text(key, "key"), bytes, cache->plugin_policy);
    if (block == nullptr) throw_no_room(bytes);
    hand_out(*block, result);
  });
}

hr_status acquire(const hr_host* host, const char* key, uint64_t bytes, hr_cache_block* out, int32_t* fresh,
                  hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    hr_cache_block& result = out_of(out);
    int32_t& is_fresh = out_of(fresh);
    const auto cache = cache_used_by(host);
    Block* block = cache->blocks.acquire(text(key, "key"), bytes, cache->plugin_policy);
    if (block == nullptr) throw_no_room(bytes);
    is_fresh = block->published ? 0 : 1;
    hand_out(*block, result);
  });
}

// Blocks end with their session, so after its end there is nothing to do.
void publish(const hr_host* host, hr_cache_block* block) HR_NOEXCEPT {
  if (block == nullptr || block->reference == nullptr) return;
  if (const auto session = live_session_of(host))
    cache_of(*session)->blocks.publish(static_cast<Block*>(block->reference));
}

void release(const hr_host* host, hr_cache_block* block) HR_NOEXCEPT {
  if (block == nullptr || block->reference == nullptr) return;
  if (const auto session = live_session_of(host))
    cache_of(*session)->blocks.release(static_cast<Block*>(block->reference));
  // So that a second release does nothing.
  *block = {sizeof(hr_cache_block), 0, nullptr, 0, nullptr};
}

}  // namespace

const hr_cache& cache_service() {
  static const hr_cache table{sizeof(hr_cache), 0, lookup, reserve, publish, release, acquire};
  return table;
}

const std::shared_ptr<CacheSession>& CacheSession::of_process() {
  static const auto* session =
      new auto(std::make_shared<CacheSession>());  // plugins may release until the process ends
  return *session;
}

namespace {

// A part of the keys: loaders of one cache (training, validation) have the same indices.
std::atomic<uint32_t> loaders{0};

void append(std::string& key, const auto& number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); }

std::byte* data_of(const DLTensor& tensor) { return static_cast<std::byte*>(tensor.data) + tensor.byte_offset; }

}  // namespace

KeptSamples::KeptSamples(SampleCache& cache, std::span<const Field> fields, CachePolicy policy)
    : cache_(cache), policy_(policy), prefix_(1, '\0') {  // a plugin's key is a C string and cannot begin with NUL
  append(prefix_, ++loaders);
  for (const Field& field : fields) {
    field_bytes_.push_back(static_cast<size_t>(field.bytes()));
    bytes_ += field_bytes_.back();
  }
}

KeptSamples::~KeptSamples() { cache_.drop(prefix_); }

std::string KeptSamples::key(uint64_t index) const {
  std::string key = prefix_;
  append(key, index);
  return key;
}

bool KeptSamples::load(uint64_t index, std::span<const DLTensor> at) const {
  SampleCache::Block* block = cache_.lookup(key(index));
  if (block == nullptr) return false;
  const std::byte* from = block->memory.data();
  for (size_t i = 0; i < field_bytes_.size(); from += field_bytes_[i++]) {
    std::memcpy(data_of(at[i]), from, field_bytes_[i]);
  }
  cache_.release(block);
  return true;
}

void KeptSamples::store(uint64_t index, std::span<const DLTensor> at) const {
  SampleCache::Block* block = cache_.reserve(key(index), bytes_, policy_);
  if (block == nullptr) return;
  std::byte* to = block->memory.data();
  for (size_t i = 0; i < field_bytes_.size(); to += field_bytes_[i++]) {
    std::memcpy(to, data_of(at[i]), field_bytes_[i]);
  }
  // Where another thread has stored the sample meanwhile, release() frees this block.
  cache_.publish(block);
  cache_.release(block);
}

}  // namespace headroom
