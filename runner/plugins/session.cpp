#include "plugins/session.hpp"

#include <list>
#include <utility>

#include "plugins/host.hpp"

namespace headroom {

namespace {

// What an hr_host that a plugin sees is part of: `native` is the first member, so the pointer converts back. The
// session is weak, because the host outlives it.
struct PluginHost {
  hr_host native;
  std::string plugin_id;
  std::weak_ptr<Session> session;
};

const PluginHost& plugin_host(const hr_host* host) { return *reinterpret_cast<const PluginHost*>(host); }

// Never destroyed: plugins may call at any time, also while the process ends. A list, because addresses must not
// change.
struct AllHosts {
  Mutex mutex;
  std::list<PluginHost> hosts GUARDED_BY(mutex);
};

const hr_host* make_host(std::string_view plugin_id, std::weak_ptr<Session> session) {
  static auto* all = new AllHosts;
  const MutexLock lock(all->mutex);
  return &all->hosts.emplace_back(PluginHost{native_host(), std::string(plugin_id), std::move(session)}).native;
}

}  // namespace

Session::Session(std::shared_ptr<ArraySession> of_arrays, std::shared_ptr<CacheSession> of_cache, uint64_t at_once)
    : arrays(std::move(of_arrays)), cache(std::move(of_cache)), readers(at_once) {}

std::shared_ptr<Session> Session::make(std::shared_ptr<ArraySession> arrays, std::shared_ptr<CacheSession> cache,
                                       uint64_t readers) {
  return std::shared_ptr<Session>(new Session(std::move(arrays), std::move(cache), readers));
}

const std::shared_ptr<Session>& Session::of_process() {
  static const auto* session = new auto(make(nullptr, nullptr));
  return *session;
}

const hr_host* Session::host_for(std::string_view plugin_id) {
  const MutexLock lock(mutex_);
  const hr_host*& host = hosts_[std::string(plugin_id)];
  if (host == nullptr) host = make_host(plugin_id, weak_from_this());
  return host;
}

void Session::account(const std::string& owner, int64_t delta_bytes) {
  const MutexLock lock(mutex_);
  plugin_memory_[owner] += delta_bytes;
}

std::map<std::string, int64_t> Session::plugin_memory() const {
  const MutexLock lock(mutex_);
  return plugin_memory_;
}

std::shared_ptr<Session> live_session_of(const hr_host* host) {
  return host != nullptr ? plugin_host(host).session.lock() : Session::of_process();
}

std::shared_ptr<Session> session_of(const hr_host* host) {
  std::shared_ptr<Session> live = live_session_of(host);
  return live != nullptr ? live : Session::of_process();
}

std::string plugin_of(const hr_host* host) { return host != nullptr ? plugin_host(host).plugin_id : "plugin"; }

}  // namespace headroom
