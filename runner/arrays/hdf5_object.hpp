// What a file holds beside numbers: names below a group, attributes, datasets of strings. All under Hdf5Lock; all throw
// sdk::Error.
#pragma once

#include <string>
#include <vector>

#include "arrays/hdf5.hpp"
#include "headroom/abi.h"

namespace headroom {

struct Hdf5Name {
  std::string name;
  bool is_group = false;
};

enum class Hdf5Kind { group, dataset, other };

// "/a/b" of any spelling ("a/b", "/a//b/"); "/" for the root.
std::string absolute_name(const std::string& object);

// What stands at `object` (absolute). HR_NOT_FOUND when it is not there: the sentence says what is there instead.
Hdf5Kind find_object(hid_t file, const std::string& object, const std::string& path);

// Groups and datasets below `group`, in byte order.
std::vector<Hdf5Name> list_group(hid_t file, const std::string& group);

// "groups 'a' and 'b' and dataset 'c'", "nothing": for sentences.
std::string contents(hid_t file, const std::string& group);

hr_attribute read_attribute(hid_t file, const std::string& object, const std::string& name, const std::string& path);

// Row-major; fixed strings end at their first NUL (or lose the spaces they are padded with). Under Hdf5Lock. Throws
// sdk::Error for what is no dataset of strings, or is one of more than 2^20 of them or 64 MiB.
std::vector<std::string> read_strings(hid_t file, const std::string& dataset, const std::string& path);

}  // namespace headroom
