#include "plugins/host.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "mutex.hpp"
#include "plugins/services.hpp"

namespace headroom {

namespace {

struct Registry {
  Mutex mutex;
  std::map<std::string, const void*, std::less<>> services GUARDED_BY(mutex) = built_in_services();
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
  static std::atomic<bool> flag{false};
  return flag;
}

}  // namespace headroom
