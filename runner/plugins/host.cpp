#include "plugins/host.hpp"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <spdlog/spdlog.h>
#include <string>
#include <string_view>

#include "headroom/random.h"
#include "headroom/readers.h"
#include "headroom/sdk/error.hpp"
#include "mutex.hpp"
#include "plugins/session.hpp"

namespace headroom {

namespace {

spdlog::level::level_enum level_of(int32_t level) {
  if (level <= HR_LOG_DEBUG) return spdlog::level::debug;
  if (level == HR_LOG_INFO) return spdlog::level::info;
  return level == HR_LOG_WARN ? spdlog::level::warn : spdlog::level::err;
}

int32_t log_enabled(const hr_host*, int32_t level) noexcept { return spdlog::should_log(level_of(level)) ? 1 : 0; }

void log_write(const hr_host* host, int32_t level, const char* message) noexcept {
  try {
    if (message != nullptr) spdlog::log(level_of(level), "[{}] {}", plugin_of(host), message);
  } catch (...) {  // a full disk behind stderr must not become the plugin's problem
  }
}

void account(const hr_host* host, const char* owner, int64_t delta_bytes) noexcept {
  try {
    const bool named = owner != nullptr && owner[0] != '\0';
    session_of(host)->account(named ? plugin_of(host) + "/" + owner : plugin_of(host), delta_bytes);
  } catch (...) {  // losing a number on the ledger beats ending the run
  }
}

// A block of scratch is preceded by its size, in 64 bytes that keep the alignment.
constexpr uint64_t kScratchHead = 64;

hr_status scratch(const hr_host* host, uint64_t bytes, void** out, hr_error* error) noexcept {
  if (out == nullptr) return sdk::fail(error, HR_INVALID_ARGUMENT, "the place for the result is NULL");
  const bool sane = bytes <= UINT64_MAX / 2;  // rounding up must not overflow
  const uint64_t room = sane ? kScratchHead + (bytes + 63) / 64 * 64 : 0;
  // aligned_alloc() takes whole multiples of the alignment.
  auto* block = sane ? static_cast<char*>(std::aligned_alloc(64, room)) : nullptr;
  if (block == nullptr) {
    if (error != nullptr) {
      *error = hr_error{sizeof(hr_error), HR_OUT_OF_MEMORY, {}};
      std::snprintf(error->message, sizeof error->message, "no %llu bytes of scratch memory are left",
                    static_cast<unsigned long long>(bytes));
    }
    return HR_OUT_OF_MEMORY;
  }
  *reinterpret_cast<uint64_t*>(block) = bytes;
  account(host, "scratch", static_cast<int64_t>(bytes));
  *out = block + kScratchHead;
  return HR_OK;
}

void scratch_free(const hr_host* host, void* data) noexcept {
  if (data == nullptr) return;
  char* block = static_cast<char*>(data) - kScratchHead;
  account(host, "scratch", -static_cast<int64_t>(*reinterpret_cast<uint64_t*>(block)));
  std::free(block);
}

// rng: the words of headroom/random.h, for languages that cannot include it.
uint64_t rng_sample_key(uint64_t seed, uint32_t split, uint64_t epoch, uint64_t index) noexcept {
  return hr_sample_key(seed, split, epoch, index);
}

void rng_fill(uint64_t key, uint64_t site, uint64_t first_block, uint32_t* out, uint64_t blocks) noexcept {
  for (uint64_t i = 0; i < blocks; ++i) hr_philox(key, site, first_block + i, out + 4 * i);
}

// Relaxed: the flag orders no other data.
int32_t cancelled(const hr_host*) noexcept { return cancel_flag().load(std::memory_order_relaxed) ? 1 : 0; }

uint64_t readers_at_once(const hr_host* host) noexcept {
  const std::shared_ptr<Session> session = session_of(host);
  if (session->readers > 0) session->bounds_processes = true;
  return session->readers;
}

constexpr hr_log kLog{sizeof(hr_log), 0, log_enabled, log_write};
constexpr hr_memory kMemory{sizeof(hr_memory), 0, account, scratch, scratch_free};
constexpr hr_rng kRng{sizeof(hr_rng), 0, rng_sample_key, rng_fill};
constexpr hr_cancel kCancel{sizeof(hr_cancel), 0, cancelled};
constexpr hr_readers kReaders{sizeof(hr_readers), 0, readers_at_once};

struct Registry {
  Mutex mutex;
  std::map<std::string, const void*, std::less<>> services GUARDED_BY(mutex) = {
      {HR_LOG, &kLog}, {HR_MEMORY, &kMemory}, {HR_RNG, &kRng}, {HR_CANCEL, &kCancel}, {HR_READERS, &kReaders}};
  const char* torch_tag GUARDED_BY(mutex) = nullptr;
};

// Never destroyed: plugins may call at any time, also while the process ends.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

const void* get_service(const hr_host*, const char* id) noexcept {
  if (id == nullptr) return nullptr;
  Registry& all = registry();
  const MutexLock lock(all.mutex);
  const auto found = all.services.find(std::string_view(id));
  return found != all.services.end() ? found->second : nullptr;
}

}  // namespace

hr_host native_host() {
  Registry& all = registry();
  const MutexLock lock(all.mutex);
  return {sizeof(hr_host), HR_ABI_MAJOR, HR_ABI_MINOR, "headroom", HEADROOM_VERSION, all.torch_tag, &get_service};
}

void register_service(const char* id, const void* table) {
  Registry& all = registry();
  const MutexLock lock(all.mutex);
  all.services[id] = table;
}

void set_host_torch_tag(const char* tag) {
  Registry& all = registry();
  const MutexLock lock(all.mutex);
  all.torch_tag = tag;
}

std::atomic<bool>& cancel_flag() {
  // Initialised at compile time, without a lock: a signal handler may be the first to come here.
  static std::atomic<bool> flag{false};
  return flag;
}

}  // namespace headroom
