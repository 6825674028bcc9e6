// headroom data convert --from, on files as numpy, pyarrow, pandas and ffmpeg write them (tests/golden/imports).
#pragma once

#include <gmock/gmock.h>

#include "../../end_to_end/program.hpp"
#include "arrays/h5_files.hpp"

namespace headroom {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

inline const fs::path golden = HEADROOM_SOURCE_DIR "/tests/golden/imports";

// What make_files.py calls counting(), as float64.
inline std::vector<double> counting(size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i) / 4 - 3;
  return values;
}

class Import : public TemporaryFolder {
 protected:
  Finished convert(std::vector<std::string> words, const std::string& path = "") const {
    words.insert(words.begin(), {"data", "convert"});
    StartPlace place{.folder = folder_, .environment = {}};
    if (!path.empty()) place.environment.push_back("PATH=" + path);
    return headroom_program(std::move(words), place);
  }

  // Converts, and expects a problem of that exit code, of which nothing is left.
  std::string problem(const std::string& file, int exit_code, std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {file, "--out", "bad.hdf5"});
    const Finished finished = convert(std::move(words));
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
    EXPECT_FALSE(fs::exists(folder_ / "bad.hdf5"));
    EXPECT_THAT(hidden(), testing::IsSubsetOf({std::string(".headroom-convert.jsonl")}));
    return finished.err;
  }

  std::vector<std::string> hidden() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (const std::string name = entry.path().filename(); name.starts_with('.')) names.push_back(name);
    }
    return names;
  }

  struct Dataset {
    std::vector<hsize_t> shape;
    std::string type;
    std::vector<double> values;  // {} of bool
    std::vector<std::string> channel_names;
  };

  // By libhdf5 itself.
  Dataset dataset(const std::string& file, const std::string& name) const {
    const Hdf5Lock lock;
    const Handle opened(H5Fopen((folder_ / file).c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    const Handle array(opened ? H5Dopen2(opened.get(), name.c_str(), H5P_DEFAULT) : H5I_INVALID_HID);
    if (!array) return {};
    const Handle space(H5Dget_space(array.get())), type(H5Dget_type(array.get()));
    Dataset read{{}, hdf5_type_name(type.get()), {}, {}};
    read.shape.resize(static_cast<size_t>(H5Sget_simple_extent_ndims(space.get())));
    H5Sget_simple_extent_dims(space.get(), read.shape.data(), nullptr);
    if (H5Tget_class(type.get()) != H5T_ENUM) {
      read.values.resize(static_cast<size_t>(H5Sget_simple_extent_npoints(space.get())));
      H5Dread(array.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.values.data());
    }
    if (H5Aexists(array.get(), "channel_names") <= 0) return read;
    const Handle names(H5Aopen(array.get(), "channel_names", H5P_DEFAULT)), of_name(H5Aget_type(names.get())),
        count(H5Aget_space(names.get()));
    std::vector<char*> texts(static_cast<size_t>(H5Sget_simple_extent_npoints(count.get())));
    H5Aread(names.get(), of_name.get(), texts.data());
    read.channel_names.assign(texts.begin(), texts.end());
    H5Dvlen_reclaim(of_name.get(), count.get(), H5P_DEFAULT, texts.data());
    return read;
  }
};

}  // namespace headroom
