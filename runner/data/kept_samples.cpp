#include "data/kept_samples.hpp"

#include <atomic>
#include <cstring>

namespace headroom {

namespace {

std::atomic<uint32_t> loaders{0};

void append(std::string& key, const auto& number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); }

std::byte* data_of(const DLTensor& tensor) { return static_cast<std::byte*>(tensor.data) + tensor.byte_offset; }

}  // namespace

KeptSamples::KeptSamples(SampleCache& cache, std::span<const Field> fields, CachePolicy policy)
    : cache_(cache), policy_(policy), prefix_(1, '\0') {  // no plugin's key begins so
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
  cache_.publish(block);
  cache_.release(block);
}

}  // namespace headroom
