// Where the sequences of a folder lie: in Headroom's own layout, or in one of two public ones.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sequence.hpp"

namespace spike_hdf5 {

enum class Layout { hdf5 };

struct Place {
  std::string name;
  std::filesystem::path file;  // HDF5
};

struct SplitPlaces {
  std::string name;  // "train", "val", "test"; or "all"
  std::vector<Place> sequences;
};

// `name`: "auto" or a layout's. Throws where nothing of the layout is there.
Layout layout_of(const sdk::Host& host, const std::string& name, const std::filesystem::path& path);

std::vector<SplitPlaces> find_sequences(const sdk::Host& host, Layout layout, const std::filesystem::path& path);

}  // namespace spike_hdf5
