// What a file holds besides numbers: names below a group, attributes, datasets of strings. Functions that take a file
// REQUIRE Hdf5Lock and throw sdk::Error; `path` is the file's name in sentences.
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

// The absolute name of an object: "/a/b" for "a/b" and "/a//b/", "/" for the root and "". [any]
std::string absolute_name(const std::string& object);

// The name by which libhdf5 opened the file of `object`, an open file, group or dataset.
std::string file_name(hid_t object);

// The kind of `object`, an absolute name. HR_NOT_FOUND where there is none; the sentence lists what is there instead.
Hdf5Kind find_object(hid_t file, const std::string& object, const std::string& path);

// The groups and datasets directly below `group`, sorted by their bytes.
std::vector<Hdf5Name> list_group(hid_t file, const std::string& group);

// The same as words, the first eight of each kind: "groups 'a' and 'b' and dataset 'c'", "nothing".
std::string contents(hid_t file, const std::string& group);

// One number or one string; a longer string is cut to hr_attribute's size. HR_NOT_FOUND where there is none,
// HR_UNSUPPORTED where it is anything else.
hr_attribute read_attribute(hid_t file, const std::string& object, const std::string& name, const std::string& path);

// All strings of a dataset, or of one of an object's attributes, row-major. Strings of fixed length end at their first
// NUL or lose their padding of spaces. Throws for another type, and for more than 2^20 strings or 64 MiB.
std::vector<std::string> read_strings(hid_t file, const std::string& dataset, const std::string& path);
std::vector<std::string> read_attribute_strings(hid_t file, const std::string& object, const std::string& name,
                                                const std::string& path);

}  // namespace headroom
