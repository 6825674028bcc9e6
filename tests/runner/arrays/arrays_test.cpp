// headroom.arrays/1 on sound files: shapes, members, boxes, conversions, names and attributes.

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <sys/resource.h>
#include <thread>

#include "h5_files.hpp"

namespace headroom {
namespace {

constexpr DLDataType f32{kDLFloat, 32, 1}, f64{kDLFloat, 64, 1}, f16{kDLFloat, 16, 1}, i8{kDLInt, 8, 1},
    i32{kDLInt, 32, 1}, i64{kDLInt, 64, 1}, u8{kDLUInt, 8, 1}, u16{kDLUInt, 16, 1}, boolean{kDLBool, 8, 1};

class Arrays : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    path_ = (folder_ / "a.h5").string();
  }
  std::string path_;
};

// One record of an EMG file as the recordings have it: packed, 8-byte angles, 4-byte EMG.
struct __attribute__((packed)) Record {
  double time;
  double angles[3];
  float emg[4];
};

Handle record_type() {
  const hsize_t three = 3, four = 4;
  const Handle angles(H5Tarray_create2(H5T_IEEE_F64LE, 1, &three)), emg(H5Tarray_create2(H5T_IEEE_F32LE, 1, &four));
  Handle type(H5Tcreate(H5T_COMPOUND, sizeof(Record)));
  H5Tinsert(type.get(), "time", 0, H5T_IEEE_F64LE);
  H5Tinsert(type.get(), "joint_angles", 8, angles.get());
  H5Tinsert(type.get(), "emg", 32, emg.get());
  return type;
}

std::vector<Record> records(size_t count) {
  std::vector<Record> all(count);
  for (size_t i = 0; i < count; ++i) {
    all[i].time = 0.5 * static_cast<double>(i);
    for (int j = 0; j < 3; ++j) all[i].angles[j] = static_cast<double>(i) + 0.1 * j;
    for (int c = 0; c < 4; ++c) all[i].emg[c] = static_cast<float>(i) * 10 + static_cast<float>(c);
  }
  return all;
}

TEST_F(Arrays, DescribesACompound) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_), type = record_type();
    write_dataset(file.get(), "/emg2pose/timeseries", type.get(), {10}, records(10), {4}, 4);
  }
  OpenArray array(path_, "emg2pose/timeseries");
  ASSERT_EQ(array.status(), HR_OK) << array.message();
  hr_array_info info{};
  ASSERT_EQ(arrays_service().info(array.get(), &info, nullptr), HR_OK);
  EXPECT_EQ(info.struct_size, sizeof info);
  EXPECT_EQ(info.ndim, 1);
  EXPECT_EQ(info.shape[0], 10u);
  EXPECT_EQ(info.chunk[0], 4u);
  EXPECT_EQ(info.dtype.bits, 0);
  EXPECT_EQ(info.member_count, 3u);
  EXPECT_EQ(info.filtered, 1u);
  EXPECT_EQ(info.element_bytes, 48u);
  hr_array_member member{};
  ASSERT_EQ(arrays_service().member(array.get(), 2, &member, nullptr), HR_OK);
  EXPECT_STREQ(member.name, "emg");
  EXPECT_EQ(member.ndim, 1);
  EXPECT_EQ(member.shape[0], 4u);
  EXPECT_EQ(member.dtype.code, kDLFloat);
  EXPECT_EQ(member.dtype.bits, 32);
  EXPECT_EQ(member.offset, 32u);
}

TEST_F(Arrays, ReadsMembersOfAWindowIntoStridedRows) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_), type = record_type();
    write_dataset(file.get(), "t", type.get(), {10}, records(10));
  }
  OpenArray array(path_, "t");
  float rows[3][8];
  std::fill(&rows[0][0], &rows[0][0] + 24, -1.0f);
  double time[3];
  ASSERT_EQ(
      array.read({6}, {3},
                 {{2, f32, &rows[0][0], sizeof rows[0]}, {1, f32, &rows[0][4], sizeof rows[0]}, {0, f64, time, 0}}),
      HR_OK)
      << array.message();
  for (int i = 0; i < 3; ++i) {
    const float at = static_cast<float>(6 + i);
    EXPECT_EQ(time[i], 0.5 * at);
    for (int c = 0; c < 4; ++c) EXPECT_EQ(rows[i][c], at * 10 + static_cast<float>(c));
    for (int j = 0; j < 3; ++j) EXPECT_EQ(rows[i][4 + j], static_cast<float>(at + 0.1 * j));
    EXPECT_EQ(rows[i][7], -1.0f) << "wrote beyond its element";
  }
}

TEST_F(Arrays, ReadsBoxesOfManyAxesInRowMajorOrder) {
  std::vector<int32_t> values(5 * 7 * 6);
  std::iota(values.begin(), values.end(), 0);
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "x", H5T_STD_I32LE, {5, 7, 6}, values, {2, 3, 4});
  }
  OpenArray array(path_, "x");
  std::vector<int64_t> read(2 * 3 * 2);
  ASSERT_EQ(array.read({3, 1, 4}, {2, 3, 2}, {{HR_WHOLE, i64, read.data(), 0}}), HR_OK) << array.message();
  std::vector<int64_t> expected;
  for (int a = 3; a < 5; ++a) {
    for (int b = 1; b < 4; ++b) {
      for (int c = 4; c < 6; ++c) expected.push_back((a * 7 + b) * 6 + c);
    }
  }
  EXPECT_EQ(read, expected);
}

// Boxes larger than a block, so that each way to divide one is taken: rows of one axis, and single steps of the axes
// before it.
TEST_F(Arrays, ReadsBoxesLargerThanABlock) {
  std::vector<float> values(3 * 700 * 1100);  // 9.2 MB
  std::iota(values.begin(), values.end(), 0.0f);
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "flat", H5T_IEEE_F32BE, {values.size()}, values, {}, 0, H5T_NATIVE_FLOAT);
    write_dataset(file.get(), "deep", H5T_IEEE_F32BE, {3, 700, 1100}, values, {}, 0, H5T_NATIVE_FLOAT);
    write_dataset(file.get(), "wide", H5T_IEEE_F32BE, {1, 2, values.size() / 2}, values, {}, 0, H5T_NATIVE_FLOAT);
  }
  std::vector<float> read(values.size());
  ASSERT_EQ(OpenArray(path_, "flat").read({0}, {values.size()}, {{HR_WHOLE, f32, read.data(), 0}}), HR_OK);
  EXPECT_TRUE(read == values);
  std::fill(read.begin(), read.end(), 0.0f);
  ASSERT_EQ(OpenArray(path_, "deep").read({0, 0, 0}, {3, 700, 1100}, {{HR_WHOLE, f32, read.data(), 0}}), HR_OK);
  EXPECT_TRUE(read == values);
  std::fill(read.begin(), read.end(), 0.0f);
  ASSERT_EQ(OpenArray(path_, "wide").read({0, 0, 0}, {1, 2, values.size() / 2}, {{HR_WHOLE, f32, read.data(), 0}}),
            HR_OK);
  EXPECT_TRUE(read == values);
}

TEST_F(Arrays, ReadsScalarsAndNothing) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "one", H5T_IEEE_F64LE, {}, std::vector<double>{2.5});
    write_dataset(file.get(), "none", H5T_IEEE_F64LE, {0, 3}, std::vector<double>{0});
  }
  float value = 0;
  ASSERT_EQ(OpenArray(path_, "one").read({}, {}, {{HR_WHOLE, f32, &value, 0}}), HR_OK);
  EXPECT_EQ(value, 2.5f);
  ASSERT_EQ(OpenArray(path_, "none").read({0, 0}, {0, 3}, {{HR_WHOLE, f32, &value, 0}}), HR_OK);
  EXPECT_EQ(value, 2.5f);
}

TEST_F(Arrays, ConvertsByTypeAndByteOrder) {
  const std::vector<double> doubles{0.0, -0.0, 1e300, 0.1, -3.75, NAN};
  const std::vector<int16_t> shorts{0, -1, 32767, -32768, 5, 256};
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "f8", H5T_IEEE_F64LE, {6}, doubles);
    write_dataset(file.get(), "i2be", H5T_STD_I16BE, {6}, shorts, {}, 0, H5T_NATIVE_SHORT);
    write_dataset(file.get(), "u1", H5T_STD_U8LE, {3}, std::vector<uint8_t>{0, 200, 255});
    const Handle half(H5Tcopy(H5T_IEEE_F32LE));  // as h5py writes float16
    H5Tset_fields(half.get(), 15, 10, 5, 0, 10);
    H5Tset_size(half.get(), 2);
    H5Tset_ebias(half.get(), 15);
    write_dataset(file.get(), "f2", half.get(), {7},
                  std::vector<uint16_t>{0x3C00, 0xC000, 0x0001, 0x7BFF, 0xFC00, 0x7E00, 0x8000});
    const Handle truth(H5Tenum_create(H5T_STD_I8LE));  // as h5py writes bool
    for (const int8_t value : {int8_t{0}, int8_t{1}})
      H5Tenum_insert(truth.get(), value == 0 ? "FALSE" : "TRUE", &value);
    write_dataset(file.get(), "b1", truth.get(), {2}, std::vector<int8_t>{0, 1});
  }
  float to_f32[7];
  ASSERT_EQ(OpenArray(path_, "f8").read({0}, {6}, {{HR_WHOLE, f32, to_f32, 0}}), HR_OK);
  EXPECT_TRUE(std::signbit(to_f32[1]));
  EXPECT_TRUE(std::isinf(to_f32[2]));
  EXPECT_EQ(to_f32[3], 0.1f);
  EXPECT_TRUE(std::isnan(to_f32[5]));

  uint8_t to_bool[6];
  ASSERT_EQ(OpenArray(path_, "f8").read({0}, {6}, {{HR_WHOLE, boolean, to_bool, 0}}), HR_OK);
  EXPECT_EQ(std::vector<int>(to_bool, to_bool + 6), (std::vector<int>{0, 0, 1, 1, 1, 1}));

  int32_t to_i32[6];
  ASSERT_EQ(OpenArray(path_, "i2be").read({0}, {6}, {{HR_WHOLE, i32, to_i32, 0}}), HR_OK);
  EXPECT_EQ(std::vector<int>(to_i32, to_i32 + 6), std::vector<int>(shorts.begin(), shorts.end()));

  uint16_t to_u16[3];
  ASSERT_EQ(OpenArray(path_, "u1").read({0}, {3}, {{HR_WHOLE, u16, to_u16, 0}}), HR_OK);
  EXPECT_EQ(to_u16[2], 255);

  ASSERT_EQ(OpenArray(path_, "f2").read({0}, {7}, {{HR_WHOLE, f32, to_f32, 0}}), HR_OK);
  EXPECT_EQ(to_f32[0], 1.0f);
  EXPECT_EQ(to_f32[1], -2.0f);
  EXPECT_EQ(to_f32[2], std::ldexp(1.0f, -24));
  EXPECT_EQ(to_f32[3], 65504.0f);
  EXPECT_EQ(to_f32[4], -INFINITY);
  EXPECT_TRUE(std::isnan(to_f32[5]));
  EXPECT_TRUE(std::signbit(to_f32[6]));

  OpenArray truth(path_, "b1");
  hr_array_info info{};
  ASSERT_EQ(arrays_service().info(truth.get(), &info, nullptr), HR_OK);
  EXPECT_EQ(info.dtype.code, kDLBool);
  ASSERT_EQ(truth.read({0}, {2}, {{HR_WHOLE, f32, to_f32, 0}}), HR_OK);
  EXPECT_EQ(to_f32[1], 1.0f);
}

TEST_F(Arrays, RefusesWhatWouldLoseValues) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "f8", H5T_IEEE_F64LE, {2}, std::vector<double>{1, 2});
    write_dataset(file.get(), "u1", H5T_STD_U8LE, {2}, std::vector<uint8_t>{1, 2});
  }
  int64_t out[2];
  OpenArray floats(path_, "f8"), bytes(path_, "u1");
  EXPECT_EQ(floats.read({0}, {2}, {{HR_WHOLE, i64, out, 0}}), HR_INVALID_ARGUMENT);
  EXPECT_EQ(floats.message(),
            "'/f8' of '" + path_ +
                "' is float64, which does not convert to int64 without loss; ask for a float or a wider type");
  EXPECT_EQ(bytes.read({0}, {2}, {{HR_WHOLE, i8, out, 0}}), HR_INVALID_ARGUMENT);
  EXPECT_EQ(bytes.read({0}, {2}, {{HR_WHOLE, f16, out, 0}}), HR_INVALID_ARGUMENT);
  EXPECT_EQ(bytes.read({0}, {2}, {{HR_WHOLE, u8, out, 0}}), HR_OK);
}

// A string beside the numbers has another form in memory; the numbers are read all the same.
TEST_F(Arrays, ReadsNumbersBesideStringsAndReferences) {
  struct Mixed {
    const char* label;
    int16_t count;
    double value;
  };
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_), text(H5Tcopy(H5T_C_S1));
    H5Tset_size(text.get(), H5T_VARIABLE);
    const Handle type(H5Tcreate(H5T_COMPOUND, sizeof(Mixed)));
    H5Tinsert(type.get(), "label", offsetof(Mixed, label), text.get());
    H5Tinsert(type.get(), "count", offsetof(Mixed, count), H5T_NATIVE_INT16);
    H5Tinsert(type.get(), "value", offsetof(Mixed, value), H5T_NATIVE_DOUBLE);
    write_dataset(file.get(), "m", type.get(), {2}, std::vector<Mixed>{{"one", 1, 1.5}, {"two", 2, 2.5}});
  }
  OpenArray array(path_, "m");
  double value[2];
  int64_t count[2];
  ASSERT_EQ(array.read({0}, {2}, {{2, f64, value, 0}, {1, i64, count, 0}}), HR_OK) << array.message();
  EXPECT_EQ(value[1], 2.5);
  EXPECT_EQ(count[1], 2);
  EXPECT_EQ(array.read({0}, {2}, {{0, f64, value, 0}}), HR_INVALID_ARGUMENT);
  EXPECT_EQ(array.message(), "member 'label' of '/m' of '" + path_ +
                                 "' is of type string; integers, floats and bool of 1 to 8 bytes can be read");
}

TEST_F(Arrays, ManyThreadsReadTheSameBytesAsOne) {
  const auto all = records(5000);
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_), type = record_type();
    write_dataset(file.get(), "t", type.get(), {5000}, all, {206}, 4);
  }
  OpenArray array(path_, "t");
  std::vector<std::vector<float>> read(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < read.size(); ++t) {
    threads.emplace_back([&, t] {
      read[t].resize(4 * 5000);
      OpenArray mine(path_, "t");  // opening and closing races with the others' reads
      for (uint64_t k = 0; k < 50; ++k) {
        const uint64_t row = 100 * ((k * 7 + t * 13) % 50);
        hr_array* from = k % 2 == 0 ? array.get() : mine.get();
        const hr_array_target target{2, f32, read[t].data() + 4 * row, 0};
        const uint64_t rows = 100;
        ASSERT_EQ(arrays_service().read_box(from, &row, &rows, &target, 1, nullptr), HR_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& values : read) {
    for (size_t i = 0; i < 5000; ++i) ASSERT_EQ(std::memcmp(&values[4 * i], all[i].emg, sizeof all[i].emg), 0) << i;
  }
}

// Descriptors of files whose name begins so.
int open_files(const std::string& begin) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).string().starts_with(begin) ? 1 : 0;
  }
  return count;
}

// More files than a process may open: each read finds its own again.
TEST_F(Arrays, ReadsMoreFilesThanItKeepsOpen) {
  constexpr int count = 300;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{256, before.rlim_max};
  {
    const Hdf5Lock lock;
    for (int i = 0; i < count; ++i) {
      const Handle file = create_file(path_ + std::to_string(i));
      write_dataset(file.get(), "x", H5T_STD_I32LE, {1}, std::vector<int32_t>{i});
    }
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<std::unique_ptr<OpenArray>> arrays;
  for (int i = 0; i < count; ++i) arrays.push_back(std::make_unique<OpenArray>(path_ + std::to_string(i), "x"));
  for (int i = 0; i < 2 * count; ++i) {
    int32_t value = -1;
    ASSERT_EQ(arrays[static_cast<size_t>(i % count)]->read({0}, {1}, {{HR_WHOLE, i32, &value, 0}}), HR_OK);
    EXPECT_EQ(value, i % count);
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LE(open_files(path_), 128);
  EXPECT_GT(open_files(path_), 0);
  arrays.clear();
  EXPECT_EQ(open_files(path_), 0) << "a file stays open when none of its arrays is";
}

TEST_F(Arrays, AFileChangedMeanwhileIsNotReadAsTheOldOne) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "x", H5T_STD_I32LE, {1}, std::vector<int32_t>{1});
  }
  OpenArray array(path_, "x");
  std::vector<std::unique_ptr<OpenArray>> others;
  {
    const Hdf5Lock lock;
    for (int i = 0; i < 130; ++i) {
      const Handle file = create_file(path_ + std::to_string(i));
      write_dataset(file.get(), "x", H5T_STD_I32LE, {1}, std::vector<int32_t>{i});
    }
  }
  for (int i = 0; i < 130; ++i) others.push_back(std::make_unique<OpenArray>(path_ + std::to_string(i), "x"));
  std::filesystem::rename(path_ + "0", path_);  // while the first is closed for a moment
  int32_t value = -1;
  EXPECT_EQ(array.read({0}, {1}, {{HR_WHOLE, i32, &value, 0}}), HR_IO);
  EXPECT_EQ(array.message(), "'" + path_ + "' was changed or replaced while it was in use; start the run again");
}

TEST_F(Arrays, ListsAGroupInByteOrder) {
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

TEST_F(Arrays, ReadsAttributesOfEveryForm) {
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
