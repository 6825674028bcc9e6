// The datasource hdf5 through its own boundary, and datasets read by libhdf5 itself to compare with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../plugin_source.hpp"
#include "h5_files.hpp"

namespace headroom {

inline const Library& hdf5_plugin() {
  static const Library library = load_plugin("hdf5");
  return library;
}

inline std::shared_ptr<const Source> open_hdf5(const std::filesystem::path& path, const std::string& options) {
  return open_source(hdf5_plugin(), path, options);
}

inline Sample read_sample(const Source& source, uint64_t index, uint64_t key = 0, bool augment = false,
                          uint32_t split = 0) {
  Reader reader = source.reader();
  return read_fields(reader, source, split, {index}, {key}, augment)[0];
}

// The whole dataset (or the member of its records) by H5Dread. T tells the memory's type.
template <class T>
std::vector<T> library_values(const std::filesystem::path& file, const std::string& dataset, hid_t type,
                              const std::string& member = "", hsize_t width = 1) {
  const Hdf5Lock lock;
  const Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const Handle array(H5Dopen2(opened.get(), dataset.c_str(), H5P_DEFAULT));
  const Handle space(H5Dget_space(array.get()));
  Handle memory(H5Tcopy(type));
  if (!member.empty()) {
    const Handle element(width > 1 ? H5Tarray_create2(type, 1, &width) : H5Tcopy(type));
    memory = Handle(H5Tcreate(H5T_COMPOUND, H5Tget_size(element.get())));
    H5Tinsert(memory.get(), member.c_str(), 0, element.get());
  }
  std::vector<T> result(static_cast<size_t>(H5Sget_simple_extent_npoints(space.get())) * width);
  EXPECT_GE(H5Dread(array.get(), memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, result.data()), 0) << dataset;
  return result;
}

class Hdf5Folder : public TemporaryFolder {
 protected:
  // What opening says, with "DIR" for the folder; "" when it opens.
  std::string sentence(const std::filesystem::path& path, const std::string& options, Exit* code = nullptr) const {
    return sentence_of([&] { open_hdf5(path, options); }, code);
  }
  std::string sentence_of(const std::function<void()>& call, Exit* code = nullptr) const {
    return headroom::sentence_of(folder_, call, code);
  }
};

// `count` values first, first + 1, ...
template <class T>
std::vector<T> counting(size_t count, size_t first = 0) {
  std::vector<T> result(count);
  for (size_t i = 0; i < count; ++i) result[i] = static_cast<T>(first + i);
  return result;
}

}  // namespace headroom
