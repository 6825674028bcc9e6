#include "ranks/sockets.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>

namespace headroom {

namespace {

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

Descriptor open_socket(int family, int type) {
  Descriptor socket(::socket(family, type | SOCK_CLOEXEC, 0));
  if (!socket) fail("socket");
  return socket;
}

// The first of the host's addresses that can be connected to.
Descriptor connected(const std::string& host, uint16_t port, int type) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = type;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found); error != 0)
    throw std::system_error(EHOSTUNREACH, std::generic_category(), host + ": " + gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    Descriptor socket = open_socket(address->ai_family, type);
    if (connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0) return socket;
  }
  fail("connecting to " + host + ":" + std::to_string(port));
}

void set(int socket, int level, int option, int value) {
  if (setsockopt(socket, level, option, &value, sizeof value) != 0) fail("setsockopt");
}

}  // namespace

Listener listen_for_ranks(bool here_only) {
  Listener listener{open_socket(AF_INET, SOCK_STREAM), 0};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(here_only ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t size = sizeof address;
  const int file = listener.socket.get();
  if (bind(file, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(file, SOMAXCONN) != 0 ||
      getsockname(file, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    fail("listening for the other ranks");
  listener.port = ntohs(address.sin_port);
  return listener;
}

std::optional<Descriptor> accept_rank(const Listener& listener, std::chrono::steady_clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd ready{.fd = listener.socket.get(), .events = POLLIN, .revents = 0};
    const int count = poll(&ready, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (count == 0) return std::nullopt;
    if (count < 0 && errno == EINTR) continue;
    Descriptor peer(accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer) return peer;
    if (errno != EINTR && errno != ECONNABORTED) fail("accepting another rank");
  }
}

Descriptor connect_to(const std::string& host, uint16_t port) { return connected(host, port, SOCK_STREAM); }

void notice_lost_peer(const Descriptor& socket) {
  ask_while_idle(socket.get());
  set(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT,
      static_cast<int>(std::chrono::milliseconds(time_to_lose_peer).count()));
}

void ask_while_idle(int socket) {
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, static_cast<int>(time_to_lose_peer.count()) - 1);
}

std::vector<int> open_connections() {
  std::vector<int> connections;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int file = std::stoi(entry.path().filename());
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_ESTABLISHED)
      connections.push_back(file);
  }
  return connections;
}

// Any answer sets both counts to zero. Sent again five times, at intervals that double, is 6.2 s at the shortest.
bool is_cut(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_retransmits >= 5 || info.tcpi_probes >= 5;
}

void wait_for_name(const std::string& host, std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  for (;;) {
    addrinfo* found = nullptr;
    const int error = getaddrinfo(host.c_str(), nullptr, nullptr, &found);
    if (error == 0) return freeaddrinfo(found);
    if (std::chrono::steady_clock::now() >= until) {
      throw std::system_error(EHOSTUNREACH, std::generic_category(),
                              "the name '" + host + "' has no address on this machine (" + gai_strerror(error) +
                                  "): set MASTER_ADDR to an address of rank 0's machine for all of them");
    }
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(time, std::chrono::milliseconds(500)));
  }
}

// A datagram socket that is connected has sent nothing, and knows its own address.
std::string address_towards(const std::string& host, uint16_t port) {
  const Descriptor socket = connected(host, port, SOCK_DGRAM);
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[NI_MAXHOST] = {};
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) fail("getsockname");
  if (getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    fail("getnameinfo");
  return text;
}

}  // namespace headroom
