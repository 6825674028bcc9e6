// headroom.arrays/1: types in files and the types that a reader asks for.

#include <cmath>

#include "h5_files.hpp"

namespace headroom {
namespace {

constexpr DLDataType f32{kDLFloat, 32, 1}, f64{kDLFloat, 64, 1}, f16{kDLFloat, 16, 1}, i8{kDLInt, 8, 1},
    i32{kDLInt, 32, 1}, i64{kDLInt, 64, 1}, u8{kDLUInt, 8, 1}, u16{kDLUInt, 16, 1}, boolean{kDLBool, 8, 1};

class ArrayTypes : public WithFile {};

TEST_F(ArrayTypes, ConvertsByTypeAndByteOrder) {
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

TEST_F(ArrayTypes, RefusesWhatWouldLoseValues) {
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
TEST_F(ArrayTypes, ReadsNumbersBesideStringsAndReferences) {
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

}  // namespace
}  // namespace headroom
