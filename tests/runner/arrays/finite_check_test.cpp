// read_box_check_finite: the values of read_box, and whether all of them are finite, by every way to a dataset's bytes.

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "arrays/array_session.hpp"
#include "arrays/block_copy.hpp"
#include "arrays/hdf5_array.hpp"
#include "h5_files.hpp"

namespace headroom {
namespace {

constexpr DLDataType f32{kDLFloat, 32, 1}, f64{kDLFloat, 64, 1};
constexpr uint64_t rows = 3000, columns = 40;

struct Read {
  hr_status status = HR_INTERNAL;
  bool finite = false;
};

Read read_looking(const OpenArray& array, const std::vector<uint64_t>& start, const std::vector<uint64_t>& count,
                  const std::vector<hr_array_target>& targets) {
  int32_t finite = -1;
  const hr_status status = arrays_service().read_box_check_finite(
      array.get(), start.data(), count.data(), targets.data(), static_cast<uint32_t>(targets.size()), &finite, nullptr);
  return {status, finite == 1};
}

class FiniteCheck : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    path_ = (folder_ / "a.h5").string();
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<double>(i % 1000) - 500.0;
  }
  void TearDown() override {
    ArraySession::of_process()->map_files(false);
    TemporaryFolder::TearDown();
  }

  void write(hid_t type, const std::vector<hsize_t>& chunk, int deflate) {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "x", type, {rows, columns}, values_, chunk, deflate, H5T_NATIVE_DOUBLE);
  }

  // The box without and with the bad value, which stands at [1500, 20].
  template <class T>
  void expect_told(DLDataType dtype, bool finite_at_its_place) {
    const OpenArray array(path_, "x");
    ASSERT_EQ(array.status(), HR_OK) << array.message();
    struct Case {
      std::vector<uint64_t> start, count;
      bool holds_it;
    };
    for (const Case& box : {Case{{0, 0}, {rows, columns}, true}, Case{{0, 0}, {1500, columns}, false},
                            Case{{1501, 0}, {rows - 1501, columns}, false}, Case{{0, 20}, {rows, 1}, true},
                            Case{{0, 21}, {rows, 3}, false}, Case{{1490, 4}, {20, 17}, true},
                            Case{{1500, 20}, {1, 1}, true}, Case{{1490, 4}, {20, 16}, false}}) {
      SCOPED_TRACE(testing::Message() << "from " << box.start[0] << ", " << box.start[1] << " for " << box.count[0]
                                      << ", " << box.count[1]);
      std::vector<T> looked(box.count[0] * box.count[1]), plain(looked.size());
      const Read read = read_looking(array, box.start, box.count, {{HR_WHOLE, dtype, looked.data(), 0}});
      ASSERT_EQ(read.status, HR_OK);
      EXPECT_EQ(read.finite, !box.holds_it || finite_at_its_place);
      ASSERT_EQ(
          arrays_service().read_box(array.get(), box.start.data(), box.count.data(),
                                    std::vector{hr_array_target{HR_WHOLE, dtype, plain.data(), 0}}.data(), 1, nullptr),
          HR_OK);
      EXPECT_EQ(std::memcmp(looked.data(), plain.data(), plain.size() * sizeof(T)), 0);
      const uint64_t first = box.start[0] * columns + box.start[1];
      if (!box.holds_it) {
        EXPECT_EQ(looked.front(), static_cast<T>(values_[first]));
      }
    }
  }

  std::string path_;
  std::vector<double> values_ = std::vector<double>(rows * columns);
};

TEST_F(FiniteCheck, EveryLayoutAndTypeTellsOfNaN) {
  values_[1500 * columns + 20] = std::numeric_limits<double>::quiet_NaN();
  struct Kind {
    const char* name;
    hid_t type;
    std::vector<hsize_t> chunk;
    int deflate;
  };
  for (const Kind& kind : {Kind{"contiguous", H5T_IEEE_F32LE, {}, 0}, Kind{"contiguous wide", H5T_IEEE_F64LE, {}, 0},
                           Kind{"big-endian", H5T_IEEE_F32BE, {}, 0}, Kind{"raw chunks", H5T_IEEE_F32LE, {700, 11}, 0},
                           Kind{"deflated chunks", H5T_IEEE_F64LE, {256, 40}, 3},
                           Kind{"deflated and big-endian", H5T_IEEE_F64BE, {256, 40}, 3}}) {
    for (const bool mapped : {false, true}) {
      SCOPED_TRACE(std::string(kind.name) + (mapped ? ", mapped" : ""));
      ArraySession::of_process()->map_files(mapped);
      write(kind.type, kind.chunk, kind.deflate);
      expect_told<float>(f32, false);
      expect_told<double>(f64, false);
    }
  }
}

// Finite in the file, infinite in what is asked for.
TEST_F(FiniteCheck, LooksAtWhatTheReaderGets) {
  values_[1500 * columns + 20] = 1e200;
  write(H5T_IEEE_F64LE, {}, 0);
  expect_told<double>(f64, true);
  expect_told<float>(f32, false);
}

TEST_F(FiniteCheck, TheLibrarysLaneLooksToo) {
  values_[1500 * columns + 20] = -std::numeric_limits<double>::infinity();
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    const Handle compact(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_layout(compact.get(), H5D_COMPACT);
    const Handle small(H5Screate_simple(1, std::vector<hsize_t>{columns}.data(), nullptr));
    const Handle dataset(
        H5Dcreate2(file.get(), "x", H5T_IEEE_F32LE, small.get(), H5P_DEFAULT, compact.get(), H5P_DEFAULT));
    ASSERT_TRUE(dataset);
    ASSERT_GE(H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &values_[1500 * columns]), 0);
  }
  const OpenArray array(path_, "x");
  ASSERT_EQ(array.status(), HR_OK) << array.message();
  ASSERT_EQ(reinterpret_cast<const Hdf5Array*>(array.get())->plan().lane, Lane::library);
  std::vector<float> values(columns);
  EXPECT_FALSE(read_looking(array, {0}, {columns}, {{HR_WHOLE, f32, values.data(), 0}}).finite);
  EXPECT_TRUE(read_looking(array, {0}, {20}, {{HR_WHOLE, f32, values.data(), 0}}).finite);
  EXPECT_TRUE(read_looking(array, {21}, {columns - 21}, {{HR_WHOLE, f32, values.data(), 0}}).finite);
}

// Members of records: rows of widths the compiler knows and others, into dense and into strided places.
TEST_F(FiniteCheck, MembersOfRecords) {
  struct Record {
    double time;
    float sixteen[16], three[3], twenty[20];
  };
  std::vector<Record> records(500);
  for (Record& record : records) record = {1.0, {}, {}, {}};
  const auto write_records = [&] {
    const Hdf5Lock lock;
    const Handle type(H5Tcreate(H5T_COMPOUND, sizeof(Record)));
    const auto member = [&](const char* name, size_t offset, hsize_t values) {
      const Handle array(H5Tarray_create2(H5T_IEEE_F32LE, 1, &values));
      H5Tinsert(type.get(), name, offset, array.get());
    };
    H5Tinsert(type.get(), "time", offsetof(Record, time), H5T_IEEE_F64LE);
    member("sixteen", offsetof(Record, sixteen), 16);
    member("three", offsetof(Record, three), 3);
    member("twenty", offsetof(Record, twenty), 20);
    const Handle file = create_file(path_);
    write_dataset(file.get(), "x", type.get(), {records.size()}, records);
  };
  const struct {
    const char* name;
    std::function<void()> spoil;
  } cases[] = {{"sixteen", [&] { records[77].sixteen[15] = INFINITY; }},
               {"three", [&] { records[77].three[2] = -INFINITY; }},
               {"twenty", [&] { records[77].twenty[19] = NAN; }}};
  for (const auto& spoiled : cases) {
    const std::vector<Record> sound = records;
    spoiled.spoil();
    write_records();
    records = sound;
    const OpenArray array(path_, "x");
    for (uint32_t i = 0; i < 4; ++i) {
      hr_array_member member{};
      ASSERT_EQ(arrays_service().member(array.get(), i, &member, nullptr), HR_OK);
      if (member.ndim == 0) continue;
      const uint64_t width = member.shape[0], stride = width * sizeof(float) + 12;
      const bool bad = std::string(member.name) == spoiled.name;
      SCOPED_TRACE(std::string(spoiled.name) + " spoiled, " + member.name + " read");
      std::vector<float> dense(records.size() * width);
      std::vector<char> spread(records.size() * stride);
      EXPECT_EQ(read_looking(array, {0}, {500}, {{i, f32, dense.data(), 0}}).finite, !bad);
      EXPECT_EQ(read_looking(array, {0}, {500}, {{i, f32, spread.data(), stride}}).finite, !bad);
      EXPECT_TRUE(read_looking(array, {0}, {77}, {{i, f32, dense.data(), 0}}).finite);
      EXPECT_TRUE(read_looking(array, {78}, {422}, {{i, f32, dense.data(), 0}}).finite);
    }
  }
}

// A box that goes past the caches.
TEST_F(FiniteCheck, LargeBoxes) {
  std::vector<float> large(past_caches_bytes / sizeof(float) + 1000, 2.0f), read(large.size());
  for (const size_t bad : {size_t{0}, large.size() / 2, large.size() - 1, large.size()}) {
    std::vector<float> values = large;
    if (bad < values.size()) values[bad] = NAN;
    {
      const Hdf5Lock lock;
      const Handle file = create_file(path_);
      write_dataset(file.get(), "x", H5T_IEEE_F32LE, {values.size()}, values);
    }
    const OpenArray array(path_, "x");
    EXPECT_EQ(read_looking(array, {0}, {values.size()}, {{HR_WHOLE, f32, read.data(), 0}}).finite, bad == large.size());
    EXPECT_EQ(std::memcmp(read.data(), values.data(), values.size() * sizeof(float)), 0);
  }
}

TEST_F(FiniteCheck, WholeNumbersAreFiniteAndTheAnswerNeedsAPlace) {
  write(H5T_STD_I32LE, {}, 0);
  const OpenArray array(path_, "x");
  std::vector<int32_t> values(columns);
  const hr_array_target target{HR_WHOLE, {kDLInt, 32, 1}, values.data(), 0};
  EXPECT_TRUE(read_looking(array, {5, 0}, {1, columns}, {target}).finite);
  EXPECT_TRUE(read_looking(array, {5, 0}, {0, columns}, {target}).finite);
  const uint64_t start[] = {5, 0}, count[] = {1, columns};
  EXPECT_EQ(arrays_service().read_box_check_finite(array.get(), start, count, &target, 1, nullptr, nullptr),
            HR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace headroom
