// Datasets of one axis that say how rows are to be taken: ends of episodes, masks, lengths.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"

namespace hdf5_source {

namespace sdk = headroom::sdk;

// Elements [begin, begin + count) of a dataset that is_integers(). What int64 does not hold is INT64_MAX.
std::vector<int64_t> read_integers(const sdk::Array& array, uint64_t begin, uint64_t count);

// Integers or bool along one axis.
bool is_integers(const sdk::ArrayInfo& info);

// Opens a dataset that is_integers(), else throws HR_DATA_CORRUPT; `option` is what named it.
sdk::Array open_integers(const sdk::Host& host, const std::filesystem::path& file, const std::string& object,
                         const std::string& option);

// "'/meta/episode_ends' of /data/a.hdf5"
std::string place_of(const std::filesystem::path& file, const std::string& object);

}  // namespace hdf5_source
