// Names by pattern, in folders and in the groups of an HDF5 file: * and ? stay within one name, ** stands for any
// number of folders.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/datasource.hpp"

namespace hdf5_source {

namespace sdk = headroom::sdk;

bool matches(std::string_view pattern, std::string_view name);  // one name, no '/'

// Files below `folder` whose path from there matches one of `patterns`: sorted, each once.
std::vector<std::filesystem::path> find_files(const sdk::Host& host, const std::filesystem::path& folder,
                                              const std::vector<std::string>& patterns);

// Whether `file`, which lies below `folder`, matches.
bool matches_below(const std::filesystem::path& folder, const std::string& pattern, const std::filesystem::path& file);

// Groups of `file` that match an absolute pattern such as "/data/*", in byte order; "/" is the root itself.
std::vector<std::string> find_groups(const sdk::Host& host, const std::filesystem::path& file,
                                     const std::string& pattern);

}  // namespace hdf5_source
