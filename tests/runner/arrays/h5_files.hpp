// Small HDF5 files for the tests, written with libhdf5 itself so that the host's own writer proves nothing about its
// reader.
#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>
#include <string>
#include <type_traits>
#include <vector>

#include "../record/temporary_folder.hpp"
#include "arrays/arrays.hpp"
#include "arrays/hdf5.hpp"

namespace headroom {

// A name for one file in a folder of the test's own.
class WithFile : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    path_ = (folder_ / "a.h5").string();
  }
  std::string path_;
};

inline Handle create_file(const std::string& path) {
  return Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
}

// A dataset of `type` with `values`; chunk {}: contiguous. Groups in its name are made.
template <class T>
void write_dataset(hid_t file, const std::string& name, hid_t type, const std::vector<hsize_t>& shape,
                   const std::vector<T>& values, const std::vector<hsize_t>& chunk = {}, int deflate = 0,
                   hid_t memory_type = H5I_INVALID_HID) {
  const Handle space(shape.empty() ? H5Screate(H5S_SCALAR)
                                   : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
  const Handle storage(H5Pcreate(H5P_DATASET_CREATE)), links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(links.get(), 1);
  if (!chunk.empty()) H5Pset_chunk(storage.get(), static_cast<int>(chunk.size()), chunk.data());
  if (deflate > 0) H5Pset_shuffle(storage.get());
  if (deflate > 0) H5Pset_deflate(storage.get(), static_cast<unsigned>(deflate));
  const Handle dataset(H5Dcreate2(file, name.c_str(), type, space.get(), links.get(), storage.get(), H5P_DEFAULT));
  ASSERT_TRUE(dataset) << name;
  const hid_t memory = memory_type >= 0 ? memory_type : type;
  ASSERT_GE(H5Dwrite(dataset.get(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << name;
}

// A dataset of lists (H5T_VLEN), whose values are stored as `value`; T is float or int32_t.
template <class T>
void write_lists(hid_t file, const std::string& name, hid_t value, const std::vector<hsize_t>& shape,
                 const std::vector<std::vector<T>>& lists, const std::vector<hsize_t>& chunk = {}, int deflate = 0) {
  std::vector<hvl_t> values;
  for (const std::vector<T>& one : lists) values.push_back({one.size(), const_cast<T*>(one.data())});
  const hid_t native = std::is_same_v<T, float> ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT32;
  const Handle stored(H5Tvlen_create(value)), memory(H5Tvlen_create(native));
  write_dataset(file, name, stored.get(), shape, values, chunk, deflate, memory.get());
}

// An array of the service; closes itself.
class OpenArray {
 public:
  OpenArray(const std::string& path, const std::string& dataset) {
    error_.struct_size = sizeof error_;
    status_ = arrays_service().open(nullptr, path.c_str(), dataset.c_str(), &array_, &error_);
  }
  ~OpenArray() {
    if (status_ == HR_OK) arrays_service().close(array_);
  }
  OpenArray(const OpenArray&) = delete;
  OpenArray& operator=(const OpenArray&) = delete;

  hr_status status() const { return status_; }
  std::string message() const { return error_.message; }
  hr_array* get() const { return array_; }

  hr_status read(const std::vector<uint64_t>& start, const std::vector<uint64_t>& count,
                 const std::vector<hr_array_target>& targets) {
    return arrays_service().read_box(array_, start.data(), count.data(), targets.data(),
                                     static_cast<uint32_t>(targets.size()), &error_);
  }

 private:
  hr_array* array_ = nullptr;
  hr_error error_{};
  hr_status status_ = HR_INTERNAL;
};

}  // namespace headroom
