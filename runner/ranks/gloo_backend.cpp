#include "ranks/gloo_backend.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "ranks/sockets.hpp"

namespace headroom {

namespace {

// A cluster may give a job's machines their names while the job starts.
constexpr std::chrono::seconds time_to_find_name(60);

std::shared_ptr<gloo::transport::Device> open_device(const Ranks& ranks) {
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"))
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  if (ranks.local_count == ranks.count) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  const std::string address = address_towards(ranks.host, ranks.port);
  // Other machines know the name by another address. Where all were told this one, all are on this machine.
  const bool told_to_all = ranks.host == "localhost" || ranks.host.starts_with("127.");
  if (address.starts_with("127.") && !told_to_all)
    throw std::runtime_error(ranks.host +
                             " is a loopback address here: set GLOO_SOCKET_IFNAME to the interface that "
                             "leads to the other machines, or MASTER_ADDR to an address of it");
  return c10d::ProcessGroupGloo::createDeviceForHostname(address);
}

}  // namespace

c10::intrusive_ptr<c10d::Store> open_store(const Ranks& ranks, std::chrono::seconds time) {
  c10::intrusive_ptr<c10d::Store> store;
  if (!ranks.store_file.empty()) {
    store = c10::make_intrusive<c10d::FileStore>(ranks.store_file, ranks.count);
  } else {
    c10d::TCPStoreOptions options;
    options.port = ranks.port;
    options.isServer = ranks.is_first() && !ranks.hosted_by_launcher;
    options.waitWorkers = false;
    options.timeout = time;
    wait_for_name(ranks.host, time_to_find_name);
    store = c10::make_intrusive<c10d::TCPStore>(ranks.host, options);
  }
  store->setTimeout(time);
  return c10::make_intrusive<c10d::PrefixStore>("headroom/" + ranks.attempt, store);
}

c10::intrusive_ptr<c10d::Backend> open_backend(const Ranks& ranks, const c10::intrusive_ptr<c10d::Store>& store,
                                               std::chrono::milliseconds time) {
  auto options = c10d::ProcessGroupGloo::Options::create(time);
  options->devices.push_back(open_device(ranks));
  options->threads = 1;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, ranks.rank, ranks.count, options);
}

}  // namespace headroom
