// The datasource hdf5 through the plugin's own boundary: opened with TOML options, samples read as bytes by field, and
// datasets read by libhdf5 itself to compare with.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "data/arrays.hpp"
#include "error.hpp"
#include "h5_files.hpp"
#include "plugins/library.hpp"
#include "plugins/source.hpp"

namespace headroom {

inline const Library& hdf5_plugin() {
  static const Library library = [] {
    register_data_services();
    return Library::load(std::filesystem::path(HEADROOM_PLUGIN_DIR) / "hdf5.so");
  }();
  return library;
}

inline std::shared_ptr<const Source> open_hdf5(const std::filesystem::path& path, const std::string& options) {
  toml::table table = toml::parse(options);
  table.insert("path", path.string());
  const hr_options* native = hdf5_plugin().datasource()->options;
  return Source::open(hdf5_plugin(),
                      check_options(to_option_table(native), &table, "data.options", "data source 'hdf5'"));
}

using Sample = std::map<std::string, std::vector<std::byte>>;

template <class T>
std::vector<T> values(const Sample& sample, const std::string& field) {
  const auto& bytes = sample.at(field);
  std::vector<T> result(bytes.size() / sizeof(T));
  std::memcpy(static_cast<void*>(result.data()), bytes.data(), bytes.size());
  return result;
}

// Slots start out dirty, so that what read() leaves unwritten shows. `wanted` tells which fields have a slot.
inline std::vector<Sample> read_samples(
    Reader& reader, const Source& source, uint32_t split, const std::vector<uint64_t>& index,
    const std::vector<uint64_t>& key, bool augment,
    const std::function<bool(const std::string&)>& wanted = [](const std::string&) { return true; }) {
  const auto& fields = source.fields();
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<DLTensor> slots;
  for (const Field& field : fields) {
    memory.emplace_back(index.size() * static_cast<size_t>(field.bytes()), std::byte{0xAB});
    shapes.push_back(field.shape);
    shapes.back().insert(shapes.back().begin(), static_cast<int64_t>(index.size()));
  }
  for (size_t f = 0; f < fields.size(); ++f) {
    slots.push_back({wanted(fields[f].name) ? memory[f].data() : nullptr,
                     {kDLCPU, 0},
                     static_cast<int32_t>(shapes[f].size()),
                     fields[f].dtype,
                     shapes[f].data(),
                     nullptr,
                     0});
  }
  reader.read(split, index, key, augment, slots);
  std::vector<Sample> samples(index.size());
  for (size_t f = 0; f < fields.size(); ++f) {
    const auto bytes = static_cast<std::ptrdiff_t>(fields[f].bytes());
    for (size_t i = 0; i < index.size(); ++i) {
      const auto first = memory[f].begin() + static_cast<std::ptrdiff_t>(i) * bytes;
      if (wanted(fields[f].name)) samples[i][fields[f].name].assign(first, first + bytes);
    }
  }
  return samples;
}

inline Sample read_sample(const Source& source, uint64_t index, uint64_t key = 0, bool augment = false,
                          uint32_t split = 0) {
  Reader reader = source.reader();
  return read_samples(reader, source, split, {index}, {key}, augment)[0];
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

// A folder of its own for each test.
class Hdf5Folder : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "headroom-own-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  // What opening says, with "DIR" for the folder; "" when it opens.
  std::string sentence(const std::filesystem::path& path, const std::string& options, Exit* code = nullptr) const {
    return sentence_of([&] { open_hdf5(path, options); }, code);
  }
  std::string sentence_of(const std::function<void()>& call, Exit* code = nullptr) const {
    try {
      call();
    } catch (const Error& error) {
      if (code != nullptr) *code = error.exit_code();
      std::string text = error.what();
      for (size_t at; (at = text.find(folder_.string())) != std::string::npos;)
        text.replace(at, folder_.string().size(), "DIR");
      return text;
    }
    return "";
  }

  std::filesystem::path folder_;
};

// `count` values first, first + 1, ...
template <class T>
std::vector<T> counting(size_t count, size_t first = 0) {
  std::vector<T> result(count);
  for (size_t i = 0; i < count; ++i) result[i] = static_cast<T>(first + i);
  return result;
}

}  // namespace headroom
