// Lists of numbers of variable length, through the service.
#include "headroom/sdk/lists.hpp"

#include <fstream>
#include <gmock/gmock.h>

#include "../plugins/process_host.hpp"
#include "arrays/arrays.hpp"
#include "arrays/inspect.hpp"
#include "arrays/thread_buffer.hpp"
#include "h5_files.hpp"

namespace headroom {
namespace {

class ListsOfNumbers : public WithFile {
 protected:
  void SetUp() override {
    WithFile::SetUp();
    register_array_services();
  }
  // Lists 0, 1, ... of `lengths` values 1, 2, ... each.
  void write(const std::string& name, hid_t type, const std::vector<uint64_t>& lengths,
             const std::vector<hsize_t>& shape) {
    std::vector<std::vector<int32_t>> lists;
    for (const uint64_t length : lengths) {
      std::vector<int32_t>& one = lists.emplace_back(length);
      for (uint64_t i = 0; i < length; ++i) one[i] = static_cast<int32_t>(i + 1);
    }
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_lists(file.get(), name, type, shape, lists);
  }
  sdk::Lists open(const std::string& name) const {
    return {sdk::Host(host()), sdk::Array(sdk::Host(host()), path_, name)};
  }
  template <class Call>
  static std::string sentence(const Call& call, hr_status status) {
    try {
      call();
    } catch (const sdk::Error& problem) {
      EXPECT_EQ(problem.status(), status);
      return problem.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }
};

TEST_F(ListsOfNumbers, AreReadOneByOneAndConverted) {
  write("lists", H5T_STD_I16BE, {2, 0, 5, 1, 3, 4}, {2, 3});
  const sdk::Lists lists = open("lists");
  EXPECT_EQ(lists.info().shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_TRUE(sdk::same_type(lists.dtype(), sdk::i16));
  std::vector<float> values(5, -1.0f);
  EXPECT_EQ(lists.read(std::vector<uint64_t>{1, 1}, sdk::f32, values.data(), 5), 3u);
  EXPECT_THAT(values, testing::ElementsAre(1, 2, 3, -1, -1));
  // Of a longer list the first values, and how many it has.
  EXPECT_EQ(lists.read(std::vector<uint64_t>{0, 2}, sdk::f32, values.data(), 4), 5u);
  EXPECT_THAT(values, testing::ElementsAre(1, 2, 3, 4, -1));
  EXPECT_EQ(lists.read(std::vector<uint64_t>{0, 1}, sdk::f32, nullptr, 0), 0u);
  EXPECT_THAT(sentence(
                  [&] {
                    lists.read(std::vector<uint64_t>{2, 0}, sdk::f32, values.data(), 5);
                  },
                  HR_INVALID_ARGUMENT),
              testing::HasSubstr("reaches beyond it"));
  EXPECT_THAT(sentence(
                  [&] {
                    lists.read(std::vector<uint64_t>{0, 0}, sdk::u8, values.data(), 5);
                  },
                  HR_INVALID_ARGUMENT),
              testing::HasSubstr("holds lists of int16, which does not convert to uint8"));
}

TEST_F(ListsOfNumbers, TheirLengthsAreSeenWhenOpened) {
  std::vector<uint64_t> lengths(1000, 3);
  lengths[700] = 9;
  lengths[701] = 0;
  write("lists", H5T_STD_I32LE, lengths, {1000});
  const hr_list_lengths found = sdk::list_lengths(sdk::Host(host()), path_, "lists");
  EXPECT_EQ(found.seen, 1000u);
  EXPECT_EQ(found.shortest, 0u);
  EXPECT_EQ(found.longest, 9u);
  EXPECT_EQ(found.longest_at, 700u);
  EXPECT_EQ(found.values, 998u * 3 + 9);
  const InspectedFile file = inspect_file(path_, {});
  ASSERT_EQ(file.datasets.size(), 1u);
  EXPECT_EQ(file.datasets[0].object.type, "list of int32");
  EXPECT_EQ(file.datasets[0].object.lists.seen, 1000u);
  EXPECT_EQ(file.datasets[0].object.lists.longest, 9u);
}

// 16 MiB of values are enough to know them by.
TEST_F(ListsOfNumbers, ManyLargeOnesAreNotAllLookedAt) {
  write("lists", H5T_STD_I32LE, std::vector<uint64_t>(40, 1 << 18), {40});
  const hr_list_lengths found = sdk::list_lengths(sdk::Host(host()), path_, "lists");
  EXPECT_GE(found.seen, 16u);
  EXPECT_LT(found.seen, 40u);
}

TEST_F(ListsOfNumbers, OneOfMoreThan64MiBIsASentence) {
  write("lists", H5T_STD_I32LE, {1, (1 << 24) + 1}, {2});
  const sdk::Lists lists = open("lists");
  int32_t value = 0;
  EXPECT_EQ(sentence([&] { lists.read(std::vector<uint64_t>{1}, sdk::i32, &value, 1); }, HR_UNSUPPORTED),
            "the list at [1] of '/lists' of '" + path_ +
                "' takes 67108868 bytes; at most 64 MiB are read: write it as "
                "several, or end to end with episode_ends");
  EXPECT_EQ(lists.read(std::vector<uint64_t>{0}, sdk::i32, &value, 1), 1u);
  EXPECT_THAT(sentence([&] { sdk::list_lengths(sdk::Host(host()), path_, "lists"); }, HR_UNSUPPORTED),
              testing::StartsWith("a list of '/lists' of '" + path_ + "' takes 67108868 bytes"));
}

TEST_F(ListsOfNumbers, AnythingElseIsASentence) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "numbers", H5T_STD_I32LE, {2}, std::vector<int32_t>{1, 2});
    const hsize_t two = 2;
    const Handle pair(H5Tarray_create2(H5T_STD_I32LE, 1, &two)), pairs(H5Tvlen_create(pair.get()));
    write_dataset(file.get(), "pairs", pairs.get(), {3}, std::vector<hvl_t>(3));
  }
  for (const std::string name : {"/numbers", "/pairs"}) {
    EXPECT_EQ(sentence([&] { open(name); }, HR_INVALID_ARGUMENT),
              "'" + name + "' of '" + path_ + "' does not hold lists of numbers");
    EXPECT_THAT(sentence([&] { sdk::list_lengths(sdk::Host(host()), path_, name); }, HR_INVALID_ARGUMENT),
                testing::HasSubstr("lists of numbers are needed"));
  }
}

TEST_F(ListsOfNumbers, WhatOneTakesCountsAsAReaders) {
  write("lists", H5T_STD_I32LE, {1 << 20}, {1});
  int32_t value = 0;
  EXPECT_EQ(open("lists").read(std::vector<uint64_t>{0}, sdk::i32, &value, 1), uint64_t{1} << 20);
  EXPECT_GE(largest_reader_bytes(), int64_t{4} << 20);
}

// A length that the file's heap does not hold, as a damaged file has it.
TEST_F(ListsOfNumbers, ADamagedLengthIsASentence) {
  write("lists", H5T_STD_I32LE, {3, 3}, {2});
  uint64_t offset = 0;
  {
    const Hdf5Lock lock;
    const Handle file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    const Handle dataset(H5Dopen2(file.get(), "lists", H5P_DEFAULT));
    offset = H5Dget_offset(dataset.get());
  }
  std::fstream bytes(path_, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(static_cast<std::streamoff>(offset) + 4);
  bytes.write("\xff\xff\xff\xff", 4);  // where the heap stands
  bytes.close();
  EXPECT_THAT(sentence([&] { sdk::list_lengths(sdk::Host(host()), path_, "lists"); }, HR_DATA_CORRUPT),
              testing::HasSubstr("the file is damaged"));
  EXPECT_THAT(inspect_file(path_, {}).datasets.at(0).problem, testing::HasSubstr("one of its lists cannot be read"));
}

}  // namespace
}  // namespace headroom
