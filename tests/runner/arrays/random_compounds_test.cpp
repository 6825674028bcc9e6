// Whole records split by us equal single members read by libhdf5: random orders, offsets, types, byte orders, layouts
// and boxes.

#include <cstring>
#include <random>

#include "h5_files.hpp"

namespace headroom {
namespace {

struct NumberType {
  hid_t little, big, native;
  DLDataType dtype;
};

std::vector<NumberType> number_types() {
  return {{H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, {kDLFloat, 32, 1}},
          {H5T_IEEE_F64LE, H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE, {kDLFloat, 64, 1}},
          {H5T_STD_I8LE, H5T_STD_I8BE, H5T_NATIVE_INT8, {kDLInt, 8, 1}},
          {H5T_STD_U8LE, H5T_STD_U8BE, H5T_NATIVE_UINT8, {kDLUInt, 8, 1}},
          {H5T_STD_I16LE, H5T_STD_I16BE, H5T_NATIVE_INT16, {kDLInt, 16, 1}},
          {H5T_STD_U16LE, H5T_STD_U16BE, H5T_NATIVE_UINT16, {kDLUInt, 16, 1}},
          {H5T_STD_I32LE, H5T_STD_I32BE, H5T_NATIVE_INT32, {kDLInt, 32, 1}},
          {H5T_STD_U32LE, H5T_STD_U32BE, H5T_NATIVE_UINT32, {kDLUInt, 32, 1}},
          {H5T_STD_I64LE, H5T_STD_I64BE, H5T_NATIVE_INT64, {kDLInt, 64, 1}},
          {H5T_STD_U64LE, H5T_STD_U64BE, H5T_NATIVE_UINT64, {kDLUInt, 64, 1}}};
}

struct RandomMember {
  std::string name;
  NumberType number;
  hsize_t values = 0;  // 0: scalar
  Handle file_type;
  size_t count() const { return values == 0 ? 1 : values; }
  size_t bytes() const { return count() * number.dtype.bits / 8; }
};

class RandomCompounds : public TemporaryFolder, public testing::WithParamInterface<unsigned> {
 protected:
  // Under Hdf5Lock.
  void write(const std::string& path) {
    const auto types = number_types();
    size_t offset = pick(0, 3);
    for (size_t i = 0; i < pick(1, 6); ++i) {
      RandomMember member{"m" + std::to_string(i), types[pick(0, types.size() - 1)], pick(0, 5), {}};
      const hid_t base = pick(0, 1) == 0 ? member.number.little : member.number.big;
      member.file_type = member.values == 0 ? Handle(H5Tcopy(base)) : Handle(H5Tarray_create2(base, 1, &member.values));
      members_.push_back(std::move(member));
    }
    std::vector<size_t> offsets;
    for (const RandomMember& member : members_) {
      offsets.push_back(offset);
      offset += member.bytes() + pick(0, 9);
    }
    record_ = offset;
    const Handle type(H5Tcreate(H5T_COMPOUND, record_));
    std::vector<size_t> order(members_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    for (const size_t i : order)
      H5Tinsert(type.get(), members_[i].name.c_str(), offsets[i], members_[i].file_type.get());

    for (size_t axis = 0; axis < pick(1, 3); ++axis) shape_.push_back(pick(1, 40));
    hsize_t elements = 1;
    for (const hsize_t extent : shape_) elements *= extent;
    std::vector<hsize_t> chunk;
    const size_t layout = pick(0, 2);
    for (const hsize_t extent : shape_) {
      if (layout > 0) chunk.push_back(pick(1, extent));
    }
    std::vector<unsigned char> records(elements * record_);
    for (unsigned char& byte : records) byte = static_cast<unsigned char>(random_());
    const Handle file = create_file(path);
    write_dataset(file.get(), "t", type.get(), shape_, records, chunk, layout == 2 ? 3 : 0);
  }

  size_t pick(size_t least, size_t most) { return std::uniform_int_distribution<size_t>(least, most)(random_); }

  // The box of one member, as libhdf5 converts it to the native type. Under Hdf5Lock.
  static std::vector<char> by_libhdf5(const std::string& path, const RandomMember& member,
                                      const std::vector<hsize_t>& start, const std::vector<hsize_t>& count) {
    const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)),
        dataset(H5Dopen2(file.get(), "t", H5P_DEFAULT));
    const Handle value(member.values == 0 ? H5Tcopy(member.number.native)
                                          : H5Tarray_create2(member.number.native, 1, &member.values));
    const Handle type(H5Tcreate(H5T_COMPOUND, member.bytes())), space(H5Dget_space(dataset.get()));
    H5Tinsert(type.get(), member.name.c_str(), 0, value.get());
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
    const Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
    std::vector<char> read(static_cast<size_t>(H5Sget_select_npoints(space.get())) * member.bytes());
    EXPECT_GE(H5Dread(dataset.get(), type.get(), memory.get(), space.get(), H5P_DEFAULT, read.data()), 0);
    return read;
  }

  std::mt19937 random_{GetParam()};
  std::vector<RandomMember> members_;
  std::vector<hsize_t> shape_;
  size_t record_ = 0;
};

TEST_P(RandomCompounds, MembersEqualWhatLibhdf5Reads) {
  const std::string path = (folder_ / "r.h5").string();
  {
    const Hdf5Lock lock;
    write(path);
  }
  OpenArray array(path, "t");
  ASSERT_EQ(array.status(), HR_OK) << array.message();
  for (int box = 0; box < 4; ++box) {
    std::vector<uint64_t> start, count;
    uint64_t elements = 1;
    for (const hsize_t extent : shape_) {
      start.push_back(pick(0, extent - 1));
      count.push_back(pick(1, extent - start.back()));
      elements *= count.back();
    }
    std::vector<std::vector<char>> read(members_.size());
    std::vector<hr_array_target> targets;
    for (uint32_t i = 0; i < members_.size(); ++i) {
      hr_array_member described{};
      ASSERT_EQ(arrays_service().member(array.get(), i, &described, nullptr), HR_OK);
      const size_t which = static_cast<size_t>(std::stoul(described.name + 1));  // the file has its own order
      ASSERT_EQ(described.dtype.bits, members_[which].number.dtype.bits);
      read[which].resize(elements * members_[which].bytes());
      targets.push_back({i, members_[which].number.dtype, read[which].data(), 0});
    }
    ASSERT_EQ(array.read(start, count, targets), HR_OK) << array.message();
    const Hdf5Lock lock;
    for (size_t i = 0; i < members_.size(); ++i) {
      const std::vector<hsize_t> first(start.begin(), start.end()), extent(count.begin(), count.end());
      EXPECT_TRUE(read[i] == by_libhdf5(path, members_[i], first, extent)) << members_[i].name << " in box " << box;
    }
  }
  for (RandomMember& member : members_) {
    const Hdf5Lock lock;
    member.file_type = Handle();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomCompounds, testing::Range(0u, 60u));

}  // namespace
}  // namespace headroom
