// headroom.arrays/1: names below a group, and attributes.

#include <cstring>

#include "h5_files.hpp"

namespace headroom {
namespace {

class Hdf5Object : public WithFile {};

TEST_F(Hdf5Object, ListsAGroupInByteOrder) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    for (const char* name : {"b", "a/deep", "C", "a10", "a9"})
      write_dataset(file.get(), name, H5T_STD_I8LE, {1}, std::vector<int8_t>{1});
    H5Lcreate_soft("/nowhere", file.get(), "dangling", H5P_DEFAULT, H5P_DEFAULT);
  }
  std::vector<std::string> seen;
  const auto visit = [](void* context, const char* name, int32_t is_group) {
    static_cast<std::vector<std::string>*>(context)->push_back(std::string(name) + (is_group != 0 ? "/" : ""));
    return 0;
  };
  ASSERT_EQ(arrays_service().list(nullptr, path_.c_str(), "/", visit, &seen, nullptr), HR_OK);
  EXPECT_EQ(seen, (std::vector<std::string>{"C", "a/", "a10", "a9", "b"}));
  seen.clear();
  const auto first = [](void* context, const char* name, int32_t) {
    static_cast<std::vector<std::string>*>(context)->push_back(name);
    return 1;
  };
  ASSERT_EQ(arrays_service().list(nullptr, path_.c_str(), "", first, &seen, nullptr), HR_OK);
  EXPECT_EQ(seen, (std::vector<std::string>{"C"}));
}

void write_attribute(hid_t object, const char* name, hid_t type, const void* value, std::vector<hsize_t> shape = {}) {
  const Handle space(shape.empty() ? H5Screate(H5S_SCALAR)
                                   : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
  const Handle attribute(H5Acreate2(object, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT));
  ASSERT_GE(H5Awrite(attribute.get(), type, value), 0) << name;
}

TEST_F(Hdf5Object, ReadsAttributesOfEveryForm) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    const Handle group(H5Gcreate2(file.get(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const double rate = 2000.0;
    const int16_t swapped = 0x0102;
    const float single = 0.5f;
    const uint8_t byte = 7;
    const int64_t pair[2] = {1, 2};
    const uint64_t huge = (uint64_t{1} << 63) + 1, most = (uint64_t{1} << 63) - 1;
    write_attribute(group.get(), "sample_rate", H5T_NATIVE_DOUBLE, &rate);
    write_attribute(group.get(), "big_endian", H5T_STD_I16BE, &swapped);
    write_attribute(group.get(), "single", H5T_NATIVE_FLOAT, &single, {1});
    write_attribute(group.get(), "byte", H5T_NATIVE_UINT8, &byte);
    write_attribute(group.get(), "huge", H5T_NATIVE_UINT64, &huge);
    write_attribute(group.get(), "most", H5T_NATIVE_UINT64, &most);
    write_attribute(group.get(), "pair", H5T_NATIVE_INT64, pair, {2});
    const Handle truth(H5Tenum_create(H5T_STD_I8LE));
    for (const int8_t value : {int8_t{0}, int8_t{1}})
      H5Tenum_insert(truth.get(), value == 0 ? "FALSE" : "TRUE", &value);
    const int8_t yes = 1;
    write_attribute(group.get(), "truth", truth.get(), &yes);
    const Handle variable(H5Tcopy(H5T_C_S1));
    H5Tset_size(variable.get(), H5T_VARIABLE);
    H5Tset_cset(variable.get(), H5T_CSET_UTF8);
    const char* side =
        "l\xC3\xA9"
        "ft";
    write_attribute(group.get(), "side", variable.get(), &side);
    const std::string long_text = std::string(510, 'x') + "\xC3\xA9";
    const char* long_pointer = long_text.c_str();
    write_attribute(group.get(), "long", variable.get(), &long_pointer);
    const Handle fixed(H5Tcopy(H5T_C_S1));
    H5Tset_size(fixed.get(), 8);
    H5Tset_strpad(fixed.get(), H5T_STR_SPACEPAD);
    write_attribute(group.get(), "padded", fixed.get(), "ab      ");
    H5Tset_strpad(fixed.get(), H5T_STR_NULLPAD);
    write_attribute(group.get(), "full", fixed.get(), "abcdefgh");
  }
  const auto read = [&](const char* name) {
    hr_attribute value{};
    hr_error error{};
    EXPECT_EQ(arrays_service().attribute(nullptr, path_.c_str(), "/g", name, &value, &error), HR_OK) << error.message;
    return value;
  };
  EXPECT_EQ(read("sample_rate").type, HR_F64);
  EXPECT_EQ(read("sample_rate").f64, 2000.0);
  EXPECT_EQ(read("big_endian").i64, 0x0201);
  EXPECT_EQ(read("big_endian").f64, 0x0201);
  EXPECT_EQ(read("single").f64, 0.5);
  EXPECT_EQ(read("byte").type, HR_I64);
  EXPECT_EQ(read("byte").i64, 7);
  EXPECT_EQ(read("truth").i64, 1);
  EXPECT_EQ(read("most").i64, INT64_MAX);
  EXPECT_STREQ(read("side").string,
               "l\xC3\xA9"
               "ft");
  EXPECT_EQ(std::strlen(read("long").string), 510u) << "a character must not be cut in half";
  EXPECT_STREQ(read("padded").string, "ab");
  EXPECT_STREQ(read("full").string, "abcdefgh");

  hr_attribute value{};
  hr_error error{};
  EXPECT_EQ(arrays_service().attribute(nullptr, path_.c_str(), "g", "rate", &value, &error), HR_NOT_FOUND);
  EXPECT_EQ(std::string(error.message),
            "'/g' of '" + path_ +
                "' has no attribute 'rate'; it has attributes 'big_endian', 'byte', 'full', 'huge', 'long', 'most', "
                "'padded', 'pair' and 4 more");
  EXPECT_EQ(arrays_service().attribute(nullptr, path_.c_str(), "g", "huge", &value, &error), HR_UNSUPPORTED);
  EXPECT_EQ(std::string(error.message),
            "attribute 'huge' of '/g' of '" + path_ + "' is an integer above 2^63 - 1, which cannot be read");
  EXPECT_EQ(arrays_service().attribute(nullptr, path_.c_str(), "g", "pair", &value, &error), HR_UNSUPPORTED);
  EXPECT_EQ(std::string(error.message),
            "attribute 'pair' of '/g' of '" + path_ + "' is not a single value; one number or one string can be read");
}

}  // namespace
}  // namespace headroom
