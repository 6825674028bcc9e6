#include "ranks/watch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <random>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

#include "ranks/sockets.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds time_to_meet(60);
constexpr std::chrono::milliseconds one_wait(100);

// Whoever else finds the port does not know the run's number.
struct Hello {
  uint64_t run;
  int32_t rank;
};

// A message is the number of a rank that is lost, or this.
constexpr int32_t leaves = -1;

template <class Value>
bool send_value(const Descriptor& socket, const Value& value) {
  return send(socket.get(), &value, sizeof value, MSG_NOSIGNAL) == sizeof value;
}

// false: the peer has ended, or cannot be reached.
template <class Value>
bool receive_value(const Descriptor& socket, Value& value) {
  ssize_t size = 0;
  do {
    size = recv(socket.get(), &value, sizeof value, MSG_WAITALL);
  } while (size < 0 && errno == EINTR);
  return size == sizeof value;
}

uint64_t number_of_run() {
  std::random_device source;
  return (static_cast<uint64_t>(source()) << 32) | source();
}

}  // namespace

RankWatch::RankWatch(const Ranks& ranks, const FromFirst& from_first, std::function<bool(int)> overdue,
                     std::vector<int> connections, std::chrono::milliseconds patience,
                     const std::function<bool()>& in_vain)
    : is_first_(ranks.is_first()),
      overdue_(std::move(overdue)),
      patience_(patience),
      wake_(eventfd(0, EFD_CLOEXEC)),
      connections_(std::move(connections)) {
  if (!wake_) throw std::system_error(errno, std::generic_category(), "eventfd");
  meet(ranks, from_first, in_vain);
  for (const Peer& peer : peers_) notice_lost_peer(peer.socket);
  for (const int connection : connections_) ask_while_idle(connection);
  // Signals are for the threads that wait for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

RankWatch::~RankWatch() {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void RankWatch::meet(const Ranks& ranks, const FromFirst& from_first, const std::function<bool()>& in_vain) {
  const bool one_machine = ranks.local_count == ranks.count;
  if (!ranks.is_first()) {
    const std::string told = from_first("");
    const size_t blank = told.find(' ');
    const auto port = static_cast<uint16_t>(std::stoul(told.substr(0, blank)));
    Descriptor socket = connect_to(one_machine ? "127.0.0.1" : ranks.host, port);
    if (!send_value(socket, Hello{std::stoull(told.substr(blank)), ranks.rank}))
      throw std::system_error(errno, std::generic_category(), "greeting rank 0");
    peers_.push_back({0, std::move(socket)});
    return;
  }
  const Listener listener = listen_for_ranks(one_machine);
  const uint64_t run = number_of_run();
  from_first(std::to_string(listener.port) + ' ' + std::to_string(run));
  const auto until = Clock::now() + time_to_meet;
  while (std::ssize(peers_) < ranks.count - 1) {
    std::optional<Descriptor> socket = accept_rank(listener, std::min(until, Clock::now() + one_wait));
    if (!socket && (Clock::now() >= until || in_vain()))
      throw std::system_error(ETIMEDOUT, std::generic_category(), "waiting for the other ranks");
    if (!socket) continue;
    // A stranger that says nothing holds nobody up for long.
    const timeval second{.tv_sec = 1, .tv_usec = 0};
    setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    Hello hello{};
    if (receive_value(*socket, hello) && hello.run == run) peers_.push_back({hello.rank, std::move(*socket)});
  }
}

std::optional<int> RankWatch::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

std::optional<int> RankWatch::lost_within(std::chrono::milliseconds time) const {
  const auto until = Clock::now() + time;
  const MutexLock lock(mutex_);
  while (!lost_ && changed_.wait_until(mutex_, until)) {
  }
  return lost_;
}

void RankWatch::acknowledge() {
  const MutexLock lock(mutex_);
  acknowledged_ = true;
}

void RankWatch::forget_connections() {
  const MutexLock lock(mutex_);
  connections_.clear();
}

void RankWatch::leave() {
  acknowledge();
  for (const Peer& peer : peers_) send_value(peer.socket, leaves);
}

bool RankWatch::is_overdue() const {
  const MutexLock lock(mutex_);
  return lost_ && !acknowledged_ && Clock::now() - lost_at_ > patience_;
}

// Whoever waits at such a connection is told that it has ended.
void RankWatch::shut_down_cut_connections() {
  const MutexLock lock(mutex_);
  for (const int connection : connections_) {
    if (is_cut(connection)) shutdown(connection, SHUT_RDWR);
  }
}

void RankWatch::run() {
  for (;;) {
    std::vector<pollfd> files = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    // poll() passes over what is negative.
    for (const Peer& peer : peers_)
      files.push_back({.fd = peer.is_there ? peer.socket.get() : -1, .events = POLLIN, .revents = 0});
    const bool waits_for_this_rank = lost().has_value();
    if (poll(files.data(), files.size(), waits_for_this_rank ? 100 : 1000) < 0) continue;
    shut_down_cut_connections();
    if (files[0].revents != 0) return;
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (files[i + 1].revents != 0) hear(peers_[i]);
    }
    if (is_overdue() && overdue_(*lost())) acknowledge();
  }
}

void RankWatch::hear(Peer& peer) {
  int32_t message = 0;
  if (receive_value(peer.socket, message)) {
    if (message != leaves) return lose(message);
    peer.is_there = false;
    return;
  }
  peer.is_there = false;
  lose(peer.rank);
}

// Others end because the first did.
void RankWatch::lose(int rank) {
  {
    const MutexLock lock(mutex_);
    if (lost_) return;
    lost_ = rank;
    lost_at_ = Clock::now();
    changed_.notify_all();
  }
  if (!is_first_) return;
  for (const Peer& peer : peers_) {
    if (peer.is_there) send_value(peer.socket, int32_t{rank});
  }
}

}  // namespace headroom
