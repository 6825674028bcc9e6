// Text for people: sizes, times and shares in log lines and reports; and foreign text - names of processes, their
// arguments - made safe for terminals, JSON and XML.
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

// "82.45 %" for a fraction, with `digits` digits after the point.
std::string percent_text(double part, int digits);

// Control characters become spaces, bytes that are not UTF-8 become '?'. Text longer than `most` bytes is cut and ends
// in "...".
std::string printable(std::string_view text, size_t most);

// `text` for a command line to copy: in quotes where a shell would not take it as one plain word.
std::string shell_word(std::string_view text);

// The width in columns of a terminal: each UTF-8 character counts as one, also those that take two columns.
size_t width_of(std::string_view text);
inline bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

}  // namespace headroom
