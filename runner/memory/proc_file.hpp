// Small text files of the kernel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// nullopt when it is missing or cannot be read.
std::optional<std::string> read_proc_file(const std::filesystem::path& path);

// The number after `key` at the beginning of a line: "RssAnon:    148 kB" -> 148 for "RssAnon:", "total_rss 5" -> 5 for
// "total_rss".
std::optional<int64_t> number_after(std::string_view text, std::string_view key);

// The same for lines in kB, which the kernel writes for 1024 bytes: "RssAnon:    148 kB" -> 151552.
std::optional<int64_t> bytes_after(std::string_view text, std::string_view key);

}  // namespace headroom
