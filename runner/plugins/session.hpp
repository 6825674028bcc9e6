// What the plugins of one run see of the host. Services are the process's (host.hpp); what they work on is the run's:
// each service finds it by the hr_host that the plugin passes. So runs of one process share nothing through plugins.
#pragma once

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

// All members [any]. A Source holds its session, so plugins' calls find it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // NULL: what the process has of its own.
  static std::shared_ptr<Session> make(std::shared_ptr<ArraySession> arrays, std::shared_ptr<CacheSession> cache);

  // Of whatever belongs to no run: plugins' init, and commands that look into files.
  static const std::shared_ptr<Session>& of_process();

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The host as the plugin of that id sees it. It lives as long as the process, as the boundary promises.
  const hr_host* host_for(std::string_view plugin_id);

  // Bytes plugins said they hold, and scratch memory they have, by "<plugin id>" or "<plugin id>/<owner>".
  void account(const std::string& owner, int64_t delta_bytes);
  std::map<std::string, int64_t> plugin_memory() const;

  const std::shared_ptr<ArraySession> arrays;
  const std::shared_ptr<CacheSession> cache;

 private:
  Session(std::shared_ptr<ArraySession> arrays, std::shared_ptr<CacheSession> cache);

  mutable Mutex mutex_;
  std::map<std::string, const hr_host*, std::less<>> hosts_ GUARDED_BY(mutex_);
  std::map<std::string, int64_t> plugin_memory_ GUARDED_BY(mutex_);
};

// Of a service's caller. The session of the process where the caller's has ended, or it passes NULL.
std::shared_ptr<Session> session_of(const hr_host* host);
// NULL where the caller's session has ended.
std::shared_ptr<Session> live_session_of(const hr_host* host);
std::string plugin_of(const hr_host* host);

}  // namespace headroom
