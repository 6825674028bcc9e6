// Which rank is lost, as a process writes it down that ends in the middle of its window: its supervisor reads it for
// the post-mortem.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

// Of a rank, in its run's folder.
inline std::filesystem::path lost_note_of(const std::filesystem::path& run, int rank) {
  return run / "ranks" / ("lost-" + std::to_string(rank) + ".txt");
}

// Makes its folder; an older note goes. Does nothing where that fails.
void forget_lost_note(const std::filesystem::path& file);

// Does nothing where the file cannot be written. [any]
void write_lost_note(const std::filesystem::path& file, const std::string& sentence);

std::string read_lost_note(const std::filesystem::path& file);  // "": there is none

}  // namespace headroom
