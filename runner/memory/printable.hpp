// Text of strangers - names of processes, their words - as terminals, JSON and XML take it.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// Control characters become spaces, bytes that are no UTF-8 '?'. Longer than `most` bytes: cut, with "..." at its end.
std::string printable(std::string_view text, size_t most);

}  // namespace headroom
