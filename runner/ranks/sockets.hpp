// TCP between the ranks of a run, beside Gloo's own. What fails throws std::system_error.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "memory/descriptor.hpp"

namespace headroom {

struct Listener {
  Descriptor socket;
  uint16_t port;  // a free one
};

// `here_only`: this machine alone can connect.
Listener listen_for_ranks(bool here_only);
// nullopt: nobody has come by then.
std::optional<Descriptor> accept_rank(const Listener& listener, std::chrono::steady_clock::time_point until);
Descriptor connect_to(const std::string& host, uint16_t port);

// From here on a peer whose machine or network is gone ends the connection after so long, as a peer that has ended does
// at once. One that is only slow keeps it: its kernel answers.
inline constexpr std::chrono::seconds time_to_lose_peer(3);
void notice_lost_peer(const Descriptor& socket);

// The TCP connections that this process has now.
std::vector<int> open_connections();
// From here on the system asks whether the peer of an idle connection is still there.
void ask_while_idle(int socket);
// Whether the peer's kernel has left all unanswered that was sent and asked for some six seconds. That of a process
// that is slow to read does answer.
bool is_cut(int socket);

// Returns once the name has an address, which may come later than the processes that use it; at most after so long.
void wait_for_name(const std::string& host, std::chrono::milliseconds time);

// The address under which this machine reaches `host`: a machine's own name may mean a loopback address.
std::string address_towards(const std::string& host, uint16_t port);

}  // namespace headroom
