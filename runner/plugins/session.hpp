// A Session is what one run owns behind the services. The tables of functions belong to the process (host.hpp); the
// data that they work on belongs to the run, and a service finds it by the hr_host that the plugin passes. So runs in
// one process share nothing through plugins.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "headroom/abi.h"
#include "mutex.hpp"

namespace headroom {

class ArraySession;  // arrays/: what headroom.arrays/1 works on
class CacheSession;  // data/: what headroom.cache/1 works on

// All members [any]. A Source keeps its session alive.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // NULL: the process's own. `readers`: see below.
  static std::shared_ptr<Session> make(std::shared_ptr<ArraySession> arrays, std::shared_ptr<CacheSession> cache,
                                       uint64_t readers = 0);

  // For what belongs to no run: init of plugins, and commands that read files.
  static const std::shared_ptr<Session>& of_process();

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The hr_host for the plugin of that id. Valid until the process ends, also after the session.
  const hr_host* host_for(std::string_view plugin_id);

  // Bytes that plugins say they hold, scratch memory included, by "<plugin id>" or "<plugin id>/<owner>".
  void account(const std::string& owner, int64_t delta_bytes);
  std::map<std::string, int64_t> plugin_memory() const;

  const std::shared_ptr<ArraySession> arrays;
  const std::shared_ptr<CacheSession> cache;
  const uint64_t readers;  // that a source may have as child processes (headroom/readers.h); 0: this is no run
  // A source has asked for `readers`, and so promised to have no more.
  std::atomic<bool> bounds_processes = false;

 private:
  Session(std::shared_ptr<ArraySession> arrays, std::shared_ptr<CacheSession> cache, uint64_t readers);

  mutable Mutex mutex_;
  std::map<std::string, const hr_host*, std::less<>> hosts_ GUARDED_BY(mutex_);
  std::map<std::string, int64_t> plugin_memory_ GUARDED_BY(mutex_);
};

// The session of a service's caller; the process's own if `host` is NULL or its session has ended.
std::shared_ptr<Session> session_of(const hr_host* host);
// The same, but NULL if the session has ended.
std::shared_ptr<Session> live_session_of(const hr_host* host);
// The caller's id; "plugin" if `host` is NULL.
std::string plugin_of(const hr_host* host);

}  // namespace headroom
