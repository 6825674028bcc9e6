// Text for people: sizes, times and shares in log lines and reports, and text of strangers - names of processes, their
// words - as terminals, JSON and XML take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

// "3.1 GiB", "812.0 MiB", "17 B": rounded, in units that memory.limit understands.
std::string size_text(int64_t bytes);

// "0.04 s", "12.5 s", "2 min 10 s", "3 h 5 min".
std::string time_text(double seconds);

// "1 run", "3 runs".
std::string counted(uint64_t number, std::string_view noun);

// "82.45 %" of a part of one, with that many digits after the point.
std::string percent_text(double part, int digits);

// Control characters become spaces, bytes that are no UTF-8 '?'. Longer than `most` bytes: cut, with "..." at its end.
std::string printable(std::string_view text, size_t most);

// For a command line that people copy: in quotes where a shell would take `text` for more than one plain word.
std::string shell_word(std::string_view text);

// In columns of a terminal: a character of UTF-8 counts once, at its first byte. Characters of two columns are not
// looked for.
size_t width_of(std::string_view text);
inline bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

}  // namespace headroom
