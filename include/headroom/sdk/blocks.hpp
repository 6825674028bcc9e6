// Memory of the host: blocks of its cache (headroom.cache/1) and scratch (headroom.memory/1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "headroom/sdk/host.hpp"

namespace headroom::sdk {

// A block of the host's cache: a counted reference, valid until destroyed.
class CacheBlock {
 public:
  // nullopt on a miss.
  static std::optional<CacheBlock> lookup(const Host& host, const std::string& key) {
    CacheBlock block(host);
    hr_error error = no_error();
    const hr_status status = block.api_->lookup(host.native(), key.c_str(), &block.block_, &error);
    if (status == HR_NOT_FOUND) return std::nullopt;
    require(status, error);
    block.held_ = true;
    return block;
  }
  // Room to fill through data(), then publish(); nullopt if it does not fit. A block destroyed unpublished is
  // discarded.
  static std::optional<CacheBlock> reserve(const Host& host, const std::string& key, uint64_t bytes) {
    CacheBlock block(host);
    hr_error error = no_error();
    const hr_status status = block.api_->reserve(host.native(), key.c_str(), bytes, &block.block_, &error);
    if (status == HR_OUT_OF_MEMORY) return std::nullopt;
    require(status, error);
    block.held_ = block.fresh_ = true;
    return block;
  }
  // lookup() or else reserve(). If fresh(), the caller fills and publishes the block while other threads that acquire
  // the key wait for it. nullopt: there is no room, read without the cache.
  static std::optional<CacheBlock> acquire(const Host& host, const std::string& key, uint64_t bytes) {
    CacheBlock block(host);
    hr_error error = no_error();
    int32_t fresh = 0;
    const hr_status status = block.api_->acquire(host.native(), key.c_str(), bytes, &block.block_, &fresh, &error);
    if (status == HR_OUT_OF_MEMORY) return std::nullopt;
    require(status, error);
    block.held_ = true;
    block.fresh_ = fresh != 0;
    return block;
  }
  CacheBlock(CacheBlock&& other) noexcept
      : host_(other.host_),
        api_(other.api_),
        block_(other.block_),
        held_(std::exchange(other.held_, false)),
        fresh_(other.fresh_) {}
  CacheBlock& operator=(CacheBlock&&) = delete;
  ~CacheBlock() {
    if (held_) api_->release(host_.native(), &block_);
  }

  bool fresh() const { return fresh_; }  // reserved, not found
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(block_.data), block_.bytes}; }
  void* data() { return const_cast<void*>(block_.data); }  // before publish()
  void publish() { api_->publish(host_.native(), &block_); }

 private:
  explicit CacheBlock(const Host& host) : host_(host), api_(&host.service<hr_cache>(HR_CACHE)) {
    block_.struct_size = sizeof block_;
  }

  Host host_;
  const hr_cache* api_;
  hr_cache_block block_{};
  bool held_ = false, fresh_ = false;
};

// 64-byte aligned memory of the host, on its ledger.
class Scratch {
 public:
  Scratch(const Host& host, uint64_t bytes) : host_(host), api_(&host.service<hr_memory>(HR_MEMORY)), bytes_(bytes) {
    hr_error error = no_error();
    require(api_->scratch(host.native(), bytes, &data_, &error), error);
  }
  Scratch(Scratch&& other) noexcept
      : host_(other.host_), api_(other.api_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (data_ != nullptr) api_->scratch_free(host_.native(), data_);
  }

  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  Host host_;
  const hr_memory* api_;
  void* data_ = nullptr;
  uint64_t bytes_;
};

}  // namespace headroom::sdk
