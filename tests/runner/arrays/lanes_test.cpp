// Every way to a dataset's bytes gives what H5Dread gives: layouts, filters in any order and left out, user blocks,
// chunks at the edge and chunks never written.

#include "lanes.hpp"

#include <cstring>

namespace headroom {
namespace {

const std::vector<std::vector<int>> pipelines = {
    {},
    {H5Z_FILTER_DEFLATE},
    {H5Z_FILTER_SHUFFLE},
    {H5Z_FILTER_FLETCHER32},
    {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE},
    {H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE},
    {H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32},
    {H5Z_FILTER_FLETCHER32, H5Z_FILTER_DEFLATE},
    {H5Z_FILTER_FLETCHER32, H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE},
    {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32},
    {H5Z_FILTER_SHUFFLE, H5Z_FILTER_FLETCHER32},
};

TEST_F(Lanes, EveryPipelineInEveryFileFormat) {
  const std::vector<std::vector<hsize_t>> shapes = {{1000}, {13, 40, 9}}, chunks = {{64}, {4, 40, 4}};
  for (const hsize_t user_block : {hsize_t{0}, hsize_t{512}}) {
    for (const bool latest : {false, true}) {
      {
        const Hdf5Lock lock;
        const Handle file = create(user_block, latest);
        for (size_t p = 0; p < pipelines.size(); ++p) {
          for (size_t s = 0; s < shapes.size(); ++s) {
            const std::string name = "p" + std::to_string(p) + "s" + std::to_string(s);
            const Handle dataset = create_dataset(file.get(), name.c_str(), p % 2 == 0 ? H5T_STD_I32LE : H5T_STD_I32BE,
                                                  shapes[s], chunked(chunks[s], pipelines[p]));
            write(dataset, H5T_NATIVE_INT32, ramp(s == 0 ? 1000 : 13 * 40 * 9).data());
          }
        }
      }
      for (size_t p = 0; p < pipelines.size(); ++p) {
        for (size_t s = 0; s < shapes.size(); ++s)
          expect_library_bytes(("p" + std::to_string(p) + "s" + std::to_string(s)).c_str(), Lane::chunk_table);
      }
    }
  }
}

TEST_F(Lanes, ContiguousWithAndWithoutAUserBlock) {
  for (const hsize_t user_block : {hsize_t{0}, hsize_t{512}, hsize_t{4096}}) {
    {
      const Hdf5Lock lock;
      const Handle file = create(user_block);
      write(create_dataset(file.get(), "x", H5T_STD_I32LE, {7, 50, 30}, chunked({})), H5T_NATIVE_INT32,
            ramp(7 * 50 * 30).data());
      write(create_dataset(file.get(), "be", H5T_STD_I32BE, {900}, chunked({})), H5T_NATIVE_INT32, ramp(900).data());
      write(create_dataset(file.get(), "one", H5T_STD_I32LE, {}, chunked({})), H5T_NATIVE_INT32, ramp(1).data());
    }
    expect_library_bytes("x", Lane::contiguous, 30);
    expect_library_bytes("be", Lane::contiguous);
    expect_library_bytes("one", Lane::contiguous, 1);
  }
}

// Both places that a user block leaves to choose from hold the same bytes: nothing tells which is meant.
TEST_F(Lanes, AUserBlockThatLeavesADoubtIsReadByTheLibrary) {
  {
    const Hdf5Lock lock;
    const Handle file = create(512);
    const std::vector<int32_t> zeros(10000);
    write(create_dataset(file.get(), "x", H5T_STD_I32LE, {10000}, chunked({1000})), H5T_NATIVE_INT32, zeros.data());
  }
  OpenArray array(path_, "x");
  ASSERT_EQ(array.status(), HR_OK);
  if (lane_of(array) == Lane::library) {
    expect_library_bytes("x", Lane::library);
  } else {
    expect_library_bytes("x", Lane::chunk_table);
  }
}

TEST_F(Lanes, WhatHasNoOffsetIsReadByTheLibrary) {
  const auto values = ramp(40);
  const std::string outside = (folder_ / "outside.bin").string();
  {
    const Hdf5Lock lock;
    const Handle file = create(512);
    const Handle compact(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_layout(compact.get(), H5D_COMPACT);
    write(create_dataset(file.get(), "compact", H5T_STD_I32LE, {40}, compact), H5T_NATIVE_INT32, values.data());
    const Handle late(H5Pcreate(H5P_DATASET_CREATE));
    const int32_t fill = -77;
    H5Pset_fill_value(late.get(), H5T_NATIVE_INT32, &fill);
    create_dataset(file.get(), "late", H5T_STD_I32LE, {40}, late);
    const Handle external(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_external(external.get(), outside.c_str(), 0, 160);
    write(create_dataset(file.get(), "external", H5T_STD_I32LE, {40}, external), H5T_NATIVE_INT32, values.data());
    write(create_dataset(file.get(), "scaled", H5T_STD_I32LE, {40},
                         [] {
                           Handle storage = chunked({16});
                           H5Pset_scaleoffset(storage.get(), H5Z_SO_INT, 0);
                           return storage;
                         }()),
          H5T_NATIVE_INT32, values.data());
    const Handle edges = chunked({16}, {H5Z_FILTER_DEFLATE});
    H5Pset_chunk_opts(edges.get(), H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    write(create_dataset(file.get(), "edges", H5T_STD_I32LE, {40}, edges), H5T_NATIVE_INT32, values.data());
    const Handle source = create_dataset(file.get(), "source", H5T_STD_I32LE, {40}, chunked({}));
    write(source, H5T_NATIVE_INT32, values.data());
    const Handle virtually(H5Pcreate(H5P_DATASET_CREATE)), space(H5Dget_space(source.get()));
    H5Pset_virtual(virtually.get(), space.get(), ".", "source", space.get());
    create_dataset(file.get(), "virtual", H5T_STD_I32LE, {40}, virtually);
  }
  for (const char* name : {"compact", "late", "external", "scaled", "edges", "virtual"}) {
    SCOPED_TRACE(name);
    expect_library_bytes(name, Lane::library);
  }
}

TEST_F(Lanes, ALinkIntoAnotherFile) {
  const std::string other = (folder_ / "other.h5").string();
  {
    const Hdf5Lock lock;
    const Handle there = create_file(other);
    write(create_dataset(there.get(), "x", H5T_STD_I32LE, {500}, chunked({})), H5T_NATIVE_INT32, ramp(500).data());
    const Handle file = create();
    const std::vector<int32_t> zeros(4000);
    write(create_dataset(file.get(), "y", H5T_STD_I32LE, {4000}, chunked({})), H5T_NATIVE_INT32, zeros.data());
    H5Lcreate_external(other.c_str(), "/x", file.get(), "x", H5P_DEFAULT, H5P_DEFAULT);
  }
  expect_library_bytes("x", Lane::library);
}

TEST_F(Lanes, ChunksNeverWrittenReadAsTheFillValue) {
  const hsize_t start[] = {32}, count[] = {16}, all[] = {100};
  {
    const Hdf5Lock lock;
    const Handle file = create();
    for (const bool told : {true, false}) {
      for (const bool compressed : {true, false}) {
        const Handle storage = chunked({16}, compressed ? std::vector<int>{H5Z_FILTER_DEFLATE} : std::vector<int>{});
        const int32_t fill = -77;
        if (told) H5Pset_fill_value(storage.get(), H5T_NATIVE_INT32, &fill);
        const std::string name = std::string(told ? "told" : "plain") + (compressed ? "z" : "");
        const Handle dataset = create_dataset(file.get(), name.c_str(), H5T_STD_I32BE, {all[0]}, storage);
        const Handle space(H5Dget_space(dataset.get())), memory(H5Screate_simple(1, count, nullptr));
        H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr);
        H5Dwrite(dataset.get(), H5T_NATIVE_INT32, memory.get(), space.get(), H5P_DEFAULT, ramp(16).data());
        create_dataset(file.get(), (name + "none").c_str(), H5T_STD_I32BE, {all[0]}, storage);
      }
    }
  }
  for (const char* name : {"told", "toldz", "plain", "plainz", "toldnone", "toldznone", "plainnone", "plainznone"})
    expect_library_bytes(name, Lane::chunk_table);
}

TEST_F(Lanes, FiltersLeftOutOfSingleChunks) {
  const auto values = ramp(64 * 4);
  {
    const Hdf5Lock lock;
    const Handle file = create();
    const Handle dataset = create_dataset(file.get(), "x", H5T_STD_I32LE, {64 * 4},
                                          chunked({64}, {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE}));
    write(dataset, H5T_NATIVE_INT32, values.data());
    const hsize_t second = 64, third = 128;
    ASSERT_GE(H5Dwrite_chunk(dataset.get(), H5P_DEFAULT, 3, &second, 256, values.data() + 7), 0);  // raw
    std::vector<unsigned char> shuffled(256);
    for (size_t e = 0; e < 64; ++e) {
      for (size_t b = 0; b < 4; ++b)
        shuffled[b * 64 + e] = reinterpret_cast<const unsigned char*>(values.data() + e)[b];
    }
    ASSERT_GE(H5Dwrite_chunk(dataset.get(), H5P_DEFAULT, 2, &third, 256, shuffled.data()), 0);  // shuffled alone
  }
  expect_library_bytes("x", Lane::chunk_table, 40);
}

// Written by h5py with liblzf: 'x' with lzf, 's' with shuffle, lzf and fletcher32.
TEST_F(Lanes, LzfAsH5pyWritesIt) {
  path_ = HEADROOM_SOURCE_DIR "/tests/golden/data/h5py_lzf.h5";
  for (const char* name : {"x", "s"}) {
    expect_library_bytes(name, Lane::chunk_table);
    std::vector<int32_t> read(120);
    ASSERT_EQ(OpenArray(path_, name).read({0}, {120}, {{HR_WHOLE, i32, read.data(), 0}}), HR_OK);
    for (int i = 0; i < 120; ++i)
      ASSERT_EQ(read[static_cast<size_t>(i)], i >= 50 && i < 60 ? (i - 50) * 123457 : i / 7 * 3) << i;
  }
}

TEST_F(Lanes, MoreChunksThanATableHolds) {
  {
    const Hdf5Lock lock;
    const Handle file = create(512);
    const Handle storage = chunked({1}, {H5Z_FILTER_SHUFFLE, H5Z_FILTER_FLETCHER32});
    const int32_t fill = 5;
    H5Pset_fill_value(storage.get(), H5T_NATIVE_INT32, &fill);
    const Handle dataset = create_dataset(file.get(), "x", H5T_STD_I32LE, {most_planned_chunks + 1}, storage);
    const hsize_t start = 300, count = 500;
    const Handle space(H5Dget_space(dataset.get())), memory(H5Screate_simple(1, &count, nullptr));
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr);
    H5Dwrite(dataset.get(), H5T_NATIVE_INT32, memory.get(), space.get(), H5P_DEFAULT, ramp(500).data());
  }
  OpenArray array(path_, "x");
  ASSERT_EQ(array.status(), HR_OK) << array.message();
  EXPECT_EQ(lane_of(array), Lane::chunk_calls);
  std::vector<int32_t> read(700);
  ASSERT_EQ(array.read({200}, {700}, {{HR_WHOLE, i32, read.data(), 0}}), HR_OK) << array.message();
  EXPECT_TRUE(std::memcmp(read.data(), by_library("x", H5T_NATIVE_INT32, {200}, {700}).data(), 2800) == 0);
}

// Boxes of single columns, narrow and wide: with what stands between them in one read, or one by one.
TEST_F(Lanes, ColumnsOfAWideArray) {
  const hsize_t rows = 3000, columns = 700;
  const auto values = ramp(rows * columns);
  {
    const Hdf5Lock lock;
    const Handle file = create();
    write(create_dataset(file.get(), "x", H5T_STD_I32LE, {rows, columns}, chunked({})), H5T_NATIVE_INT32,
          values.data());
    write(create_dataset(file.get(), "z", H5T_STD_I32LE, {rows, columns}, chunked({1000, 350})), H5T_NATIVE_INT32,
          values.data());
  }
  for (const char* name : {"x", "z"}) {
    OpenArray array(path_, name);
    for (const uint64_t width : {1, 3, 300, 699}) {
      std::vector<int32_t> read((rows - 1) * width);
      ASSERT_EQ(array.read({1, 1}, {rows - 1, width}, {{HR_WHOLE, i32, read.data(), 0}}), HR_OK) << array.message();
      for (size_t r = 0; r + 1 < rows; ++r) {
        ASSERT_EQ(std::memcmp(&read[r * width], &values[(r + 1) * columns + 1], width * 4), 0) << name << " row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace headroom
