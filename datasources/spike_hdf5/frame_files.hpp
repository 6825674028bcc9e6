// The files of a sequence that is no HDF5 file, by frame: PNG images and raw spikes.
#pragma once

#include <vector>

#include "sequence.hpp"

namespace spike_hdf5 {

struct Folders {
  std::filesystem::path blur, sharp, spikes;
};

struct FrameFiles {
  std::vector<std::filesystem::path> blur, sharp, spikes;  // one a frame; none where they are not wanted
};

// In the order of their names, in which 2 comes before 10; `extension` with its dot.
std::vector<std::filesystem::path> files_of(const sdk::Host& host, const std::filesystem::path& folder,
                                            const char* extension);

// Those whose names are those of `files`, but for the extension. HR_DATA_CORRUPT where one has no like.
std::vector<std::filesystem::path> files_like(const sdk::Host& host, const std::vector<std::filesystem::path>& files,
                                              const std::filesystem::path& folder, const char* extension);

// What is wanted of folders that hold a file for each frame.
FrameFiles files_in(const sdk::Host& host, const Folders& folders, const Wanted& wanted);

}  // namespace spike_hdf5
