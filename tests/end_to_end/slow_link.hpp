// A link between two network namespaces that delays every packet and loses some: a thread carries them from one TUN
// device to another. (The kernel's netem does the same, and is often not built in.)
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <random>
#include <sched.h>
#include <string>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "memory/descriptor.hpp"

namespace headroom {

// While it lives, this thread is in the namespace of that name (ip netns), and so is what it starts.
class InNetwork {
 public:
  explicit InNetwork(const std::string& name)
      : before_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)),
        entered_(setns(Descriptor(open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC)).get(), CLONE_NEWNET) ==
                 0) {}
  ~InNetwork() { setns(before_.get(), CLONE_NEWNET); }
  InNetwork(const InNetwork&) = delete;
  InNetwork& operator=(const InNetwork&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  const Descriptor before_;
  const bool entered_;
};

class SlowLink {
 public:
  static constexpr std::chrono::microseconds delay{2000}, jitter{1000};  // one way; a packet may overtake another
  static constexpr unsigned lost_in_1000 = 5;

  // Devices `device` in both namespaces, which the caller gives addresses. is_there(): both could be made.
  SlowLink(const std::string& one, const std::string& other, const std::string& device)
      : ends_{make(one, device), make(other, device)} {
    if (is_there()) thread_ = std::thread([this] { carry(); });
  }
  ~SlowLink() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }
  SlowLink(const SlowLink&) = delete;
  SlowLink& operator=(const SlowLink&) = delete;

  bool is_there() const { return ends_[0] && ends_[1]; }
  int64_t carried() const { return carried_; }
  int64_t lost() const { return lost_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Packet {
    Clock::time_point due;
    int to;
    std::vector<char> bytes;
  };

  static Descriptor make(const std::string& network, const std::string& device) {
    const InNetwork in(network);
    Descriptor file(in ? open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1);
    ifreq request{};
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    device.copy(request.ifr_name, IFNAMSIZ - 1);
    return file && ioctl(file.get(), TUNSETIFF, &request) == 0 ? std::move(file) : Descriptor();
  }

  void carry() {
    std::minstd_rand draw(7);  // NOLINT(cert-msc51-cpp): the same packets in every test
    std::vector<Packet> under_way;
    while (!ended_) {
      pollfd ready[2] = {{ends_[0].get(), POLLIN, 0}, {ends_[1].get(), POLLIN, 0}};
      const timespec half_millisecond{.tv_sec = 0, .tv_nsec = 500'000};
      ppoll(ready, 2, &half_millisecond, nullptr);
      for (int end = 0; end < 2; ++end) take_from(end, draw, under_way);
      const auto now = Clock::now();
      std::erase_if(under_way, [&](const Packet& packet) {
        if (packet.due > now) return false;
        (void)!write(ends_[packet.to].get(), packet.bytes.data(), packet.bytes.size());
        return true;
      });
    }
  }
  void take_from(int end, std::minstd_rand& draw, std::vector<Packet>& under_way) {
    char buffer[65536];
    for (ssize_t size = 0; (size = read(ends_[end].get(), buffer, sizeof buffer)) > 0;) {
      ++carried_;
      if (draw() % 1000 < lost_in_1000) {
        ++lost_;
        continue;
      }
      const std::chrono::microseconds extra(draw() % static_cast<unsigned>(jitter.count()));
      under_way.push_back({Clock::now() + delay + extra, 1 - end, {buffer, buffer + size}});
    }
  }

  const Descriptor ends_[2];
  std::atomic<bool> ended_ = false;
  std::atomic<int64_t> carried_ = 0, lost_ = 0;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace headroom
