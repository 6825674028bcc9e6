// headroom.arrays/1 on sound files: shapes, members, boxes, and many threads.

#include <cstring>
#include <numeric>
#include <thread>

#include "h5_files.hpp"

namespace headroom {
namespace {

constexpr DLDataType f32{kDLFloat, 32, 1}, f64{kDLFloat, 64, 1}, i64{kDLInt, 64, 1};

class Arrays : public WithFile {};

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

}  // namespace
}  // namespace headroom
