// Strings of datasets and attributes, through the service.
#include <gmock/gmock.h>

#include "../plugins/process_host.hpp"
#include "arrays/arrays.hpp"
#include "h5_files.hpp"
#include "headroom/datasource.hpp"

namespace headroom {
namespace {

class Strings : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    register_array_services();
    path_ = folder_ / "a.h5";
  }
  void write(const std::string& name, size_t bytes, H5T_str_t padding, const std::string& text,
             const std::vector<hsize_t>& shape, const std::vector<hsize_t>& chunk = {}) const {
    const Handle type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.get(), bytes);
    H5Tset_strpad(type.get(), padding);
    write_dataset(file_.get(), name, type.get(), shape, std::vector<char>(text.begin(), text.end()), chunk);
  }
  std::vector<std::string> read(const std::string& name) const { return sdk::Host(host()).strings(path_, name); }
  Handle file_;
  std::filesystem::path path_;
};

TEST_F(Strings, OfEveryKind) {
  {
    const Hdf5Lock lock;
    file_ = create_file(path_);
    write("zero", 4, H5T_STR_NULLPAD, std::string("ab\0\0abcd\0\0\0\0", 12), {3});
    write("space", 4, H5T_STR_SPACEPAD, "ab  a bc    ", {3});
    write("grid", 2, H5T_STR_NULLPAD, "aabbccdd", {2, 2}, {1, 2});
    const Handle variable(H5Tcopy(H5T_C_S1));
    H5Tset_size(variable.get(), H5T_VARIABLE);
    H5Tset_cset(variable.get(), H5T_CSET_UTF8);
    write_dataset(file_.get(), "variable", variable.get(), {3}, std::vector<const char*>{"für", "", "demo_10"});
    write_dataset(file_.get(), "one", variable.get(), {}, std::vector<const char*>{"alone"});
    write_dataset(file_.get(), "number", H5T_STD_I32LE, {1}, std::vector<int32_t>{4});
    file_ = Handle();
  }
  EXPECT_THAT(read("zero"), testing::ElementsAre("ab", "abcd", ""));
  EXPECT_THAT(read("space"), testing::ElementsAre("ab", "a bc", ""));
  EXPECT_THAT(read("/grid"), testing::ElementsAre("aa", "bb", "cc", "dd"));
  EXPECT_THAT(read("variable"), testing::ElementsAre("für", "", "demo_10"));
  EXPECT_THAT(read("one"), testing::ElementsAre("alone"));
  for (const auto& [name, sentence] :
       {std::pair("number", "'/number' of '" + path_.string() + "' holds int32 values; strings are needed"),
        std::pair("/", "'/' of '" + path_.string() + "' is not a dataset")}) {
    try {
      read(name);
      ADD_FAILURE() << name;
    } catch (const sdk::Error& problem) {
      EXPECT_EQ(problem.what(), sentence);
    }
  }
}

TEST_F(Strings, MoreThan64MiBAreRefused) {
  const std::string mebibyte(1 << 20, 'x');
  {
    const Hdf5Lock lock;
    file_ = create_file(path_);
    const Handle variable(H5Tcopy(H5T_C_S1));
    H5Tset_size(variable.get(), H5T_VARIABLE);
    write_dataset(file_.get(), "long", variable.get(), {65}, std::vector<const char*>(65, mebibyte.c_str()));
    file_ = Handle();
  }
  try {
    read("long");
    ADD_FAILURE();
  } catch (const sdk::Error& problem) {
    EXPECT_EQ(problem.what(),
              "'/long' of '" + path_.string() + "' holds 68157440 bytes of strings; at most 64 MiB are read");
  }
}

// A list is what h5py writes for attrs["names"] = ["a", "b"].
TEST_F(Strings, OfAttributes) {
  const std::string longer(2000, 'x');
  {
    const Hdf5Lock lock;
    file_ = create_file(path_);
    const Handle variable(H5Tcopy(H5T_C_S1)), fixed(H5Tcopy(H5T_C_S1));
    H5Tset_size(variable.get(), H5T_VARIABLE);
    H5Tset_cset(variable.get(), H5T_CSET_UTF8);
    H5Tset_size(fixed.get(), 2);
    H5Tset_strpad(fixed.get(), H5T_STR_NULLPAD);
    const auto put = [&](const char* name, hid_t type, const std::vector<hsize_t>& shape, const void* values) {
      const Handle space(shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, shape.data(), nullptr));
      const Handle attribute(H5Acreate2(file_.get(), name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT));
      ASSERT_GE(H5Awrite(attribute.get(), type, values), 0);
    };
    const std::vector<const char*> names = {"für", "", longer.c_str()};
    const int32_t number = 4;
    put("list", variable.get(), {3}, names.data());
    put("one", variable.get(), {}, &names[2]);
    put("fixed", fixed.get(), {2}, "aab");
    put("number", H5T_NATIVE_INT32, {}, &number);
    file_ = Handle();
  }
  const sdk::Host here(host());
  EXPECT_THAT(here.attribute_strings(path_, "/", "list").value(), testing::ElementsAre("für", "", longer));
  EXPECT_THAT(here.attribute_strings(path_, "/", "one").value(), testing::ElementsAre(longer));
  EXPECT_THAT(here.attribute_strings(path_, "/", "fixed").value(), testing::ElementsAre("aa", "b"));
  EXPECT_EQ(here.attribute_strings(path_, "/", "absent"), std::nullopt);
  try {
    here.attribute_strings(path_, "/", "number");
    ADD_FAILURE();
  } catch (const sdk::Error& problem) {
    EXPECT_EQ(problem.what(),
              "attribute 'number' of '/' of '" + path_.string() + "' holds int32 values; strings are needed");
  }
}

}  // namespace
}  // namespace headroom
