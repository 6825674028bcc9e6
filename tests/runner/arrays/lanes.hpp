// Datasets in any layout, and what the host reads of them beside what H5Dread gives.
#pragma once

#include <random>

#include "arrays/hdf5_array.hpp"
#include "h5_files.hpp"

namespace headroom {

inline constexpr DLDataType i32{kDLInt, 32, 1}, f64{kDLFloat, 64, 1};

inline Lane lane_of(const OpenArray& array) { return reinterpret_cast<const Hdf5Array*>(array.get())->plan().lane; }

inline std::vector<int32_t> ramp(size_t count) {
  std::vector<int32_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<int32_t>(i * 2654435761u >> 12);
  return values;
}

class Lanes : public WithFile {
 protected:
  // Under Hdf5Lock.
  Handle create(hsize_t user_block = 0, bool latest = false) const {
    const Handle creation(H5Pcreate(H5P_FILE_CREATE)), access(H5Pcreate(H5P_FILE_ACCESS));
    if (user_block > 0) H5Pset_userblock(creation.get(), user_block);
    if (latest) H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    return Handle(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()));
  }

  static Handle chunked(const std::vector<hsize_t>& chunk, const std::vector<int>& filters = {}) {
    Handle storage(H5Pcreate(H5P_DATASET_CREATE));
    if (!chunk.empty()) H5Pset_chunk(storage.get(), static_cast<int>(chunk.size()), chunk.data());
    for (const int filter : filters) {
      if (filter == H5Z_FILTER_DEFLATE) H5Pset_deflate(storage.get(), 5);
      if (filter == H5Z_FILTER_SHUFFLE) H5Pset_shuffle(storage.get());
      if (filter == H5Z_FILTER_FLETCHER32) H5Pset_fletcher32(storage.get());
    }
    return storage;
  }

  static Handle create_dataset(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& shape,
                               const Handle& storage) {
    const Handle space(shape.empty() ? H5Screate(H5S_SCALAR)
                                     : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
    return Handle(H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, storage.get(), H5P_DEFAULT));
  }
  static void write(const Handle& dataset, hid_t type, const void* values) {
    ASSERT_GE(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
  }

  // What H5Dread gives for a box, as `type`. Where it gives nothing: nothing.
  std::vector<char> by_library(const char* name, hid_t type, const std::vector<uint64_t>& start,
                               const std::vector<uint64_t>& count) const {
    const Hdf5Lock lock;
    const Handle file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)),
        dataset(H5Dopen2(file.get(), name, H5P_DEFAULT)), space(H5Dget_space(dataset.get()));
    const std::vector<hsize_t> first(start.begin(), start.end()), extent(count.begin(), count.end());
    if (!first.empty()) H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, first.data(), nullptr, extent.data(), nullptr);
    const hsize_t elements = static_cast<hsize_t>(H5Sget_select_npoints(space.get()));
    const Handle memory(H5Screate_simple(1, &elements, nullptr));
    std::vector<char> read(elements * H5Tget_size(type));
    if (H5Dread(dataset.get(), type, memory.get(), space.get(), H5P_DEFAULT, read.data()) < 0) return {};
    return read;
  }

  // Random boxes of an int32 dataset: as they stand in the file, and converted.
  void expect_library_bytes(const char* name, Lane lane, int boxes = 12) {
    OpenArray array(path_, name);
    ASSERT_EQ(array.status(), HR_OK) << array.message();
    EXPECT_EQ(lane_of(array), lane) << name << ": "
                                    << reinterpret_cast<const Hdf5Array*>(array.get())->plan().why_library;
    hr_array_info info{};
    ASSERT_EQ(arrays_service().info(array.get(), &info, nullptr), HR_OK);
    for (int box = 0; box < boxes; ++box) {
      std::vector<uint64_t> start, count;
      uint64_t elements = 1;
      for (int axis = 0; axis < info.ndim; ++axis) {
        start.push_back(box == 0 ? 0 : random_() % info.shape[axis]);
        count.push_back(box == 0 ? info.shape[axis] : 1 + random_() % (info.shape[axis] - start.back()));
        elements *= count.back();
      }
      std::vector<int32_t> plain(elements, -1);
      ASSERT_EQ(array.read(start, count, {{HR_WHOLE, i32, plain.data(), 0}}), HR_OK) << array.message();
      std::vector<char> bytes(reinterpret_cast<char*>(plain.data()), reinterpret_cast<char*>(plain.data() + elements));
      ASSERT_TRUE(bytes == by_library(name, H5T_NATIVE_INT32, start, count)) << name << " box " << box;
      std::vector<double> wide(elements, -1), expected(plain.begin(), plain.end());
      ASSERT_EQ(array.read(start, count, {{HR_WHOLE, f64, wide.data(), 0}}), HR_OK) << array.message();
      ASSERT_TRUE(wide == expected) << name << " box " << box;
    }
  }

  std::mt19937_64 random_{7};
};

}  // namespace headroom
