// What `headroom data inspect` says of a file: layouts, lanes, sizes, and what to mind.
#include "arrays/inspect.hpp"

#include <gmock/gmock.h>

#include "h5_files.hpp"

namespace headroom {
namespace {

class Inspect : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    path_ = folder_ / "a.hdf5";
  }
  InspectedDataset one(const std::string& name, const InspectOptions& options = {}) const {
    for (const InspectedDataset& dataset : inspect_file(path_, options).datasets) {
      if (dataset.object.name == name) return dataset;
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }
  std::filesystem::path path_;
};

TEST_F(Inspect, TellsLayoutAndLane) {
  struct Record {
    double time;
    float emg[3];
  };
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    const hsize_t three = 3;
    const Handle emg(H5Tarray_create2(H5T_IEEE_F32LE, 1, &three)), record(H5Tcreate(H5T_COMPOUND, sizeof(Record)));
    H5Tinsert(record.get(), "time", 0, H5T_IEEE_F64LE);
    H5Tinsert(record.get(), "emg", offsetof(Record, emg), emg.get());
    write_dataset(file.get(), "/g/records", record.get(), {100}, std::vector<Record>(100));
    write_dataset(file.get(), "/g/packed", H5T_STD_I16LE, {1000, 4}, std::vector<int16_t>(4000, 7), {300, 4}, 4);
    const Handle scalar(H5Screate(H5S_SCALAR)), group(H5Gopen2(file.get(), "g", H5P_DEFAULT));
    const Handle attribute(H5Acreate2(group.get(), "rate", H5T_IEEE_F64LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
    const Handle text(H5Tcopy(H5T_C_S1));
    H5Tset_size(text.get(), H5T_VARIABLE);
    write_dataset(file.get(), "names", text.get(), {2}, std::vector<const char*>{"a", "b"});
    write_dataset(file.get(), "number", H5T_STD_U8LE, {}, std::vector<uint8_t>{1});
  }
  const InspectedFile file = inspect_file(path_, {});
  EXPECT_EQ(file.problem, "");
  EXPECT_EQ(file.groups, 1u);
  EXPECT_EQ(file.attributes, 1u);
  EXPECT_THAT(file.group_attributes, testing::ElementsAre(testing::Pair("/g", testing::ElementsAre("rate"))));
  EXPECT_EQ(file.size_bytes, std::filesystem::file_size(path_));
  ASSERT_EQ(file.datasets.size(), 4u);

  const InspectedDataset records = one("/g/records"), packed = one("/g/packed"), names = one("/names");
  EXPECT_EQ(records.object.type, "{time float64, emg float32[3]}");
  EXPECT_EQ(records.object.layout, "contiguous");
  EXPECT_EQ(records.object.stored_bytes, 100 * sizeof(Record));
  EXPECT_EQ(records.lane, "direct");
  EXPECT_THAT(records.warnings, testing::ElementsAre());
  EXPECT_EQ(packed.object.shape, (std::vector<uint64_t>{1000, 4}));
  EXPECT_EQ(packed.object.chunk, (std::vector<uint64_t>{300, 4}));
  EXPECT_EQ(packed.chunks, 4u);
  EXPECT_EQ(packed.chunk_bytes, 2400u);
  EXPECT_EQ(packed.object.raw_bytes, 8000u);
  EXPECT_LT(packed.object.stored_bytes, 1000u);
  ASSERT_EQ(packed.object.filters.size(), 2u);
  EXPECT_EQ(packed.object.filters[0].name, "shuffle");
  EXPECT_EQ(packed.object.filters[1].id, H5Z_FILTER_DEFLATE);
  EXPECT_EQ(packed.lane, "direct chunks");
  EXPECT_EQ(names.lane, "libhdf5");
  EXPECT_EQ(names.why, "its records hold strings, lists or references");
  EXPECT_EQ(one("/number").object.shape, std::vector<uint64_t>{});
}

TEST_F(Inspect, WarnsOfChunksThatCostTime) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "large", H5T_STD_I32LE, {40000}, std::vector<int32_t>(40000), {30000}, 1);
    write_dataset(file.get(), "tiny", H5T_STD_I32LE, {40000}, std::vector<int32_t>(40000), {100});
    write_dataset(file.get(), "short", H5T_STD_I32LE, {40000}, std::vector<int32_t>(40000), {206}, 1);
    write_dataset(file.get(), "good", H5T_STD_I32LE, {40000}, std::vector<int32_t>(40000), {4000}, 1);
    write_dataset(file.get(), "pictures", H5T_STD_U8LE, {600, 100, 100}, std::vector<uint8_t>(6000000), {1, 100, 100},
                  1);
  }
  EXPECT_THAT(one("/large", {.chunk_cache_bytes = 100000}).warnings,
              testing::ElementsAre("a chunk of 117.2 KiB is larger than data.chunk_cache_size (97.7 KiB): every read "
                                   "decodes it anew; raise the size, or convert to smaller chunks"));
  EXPECT_THAT(one("/large", {.chunk_cache_bytes = 120000}).warnings, testing::ElementsAre());
  EXPECT_THAT(one("/tiny").warnings,
              testing::ElementsAre("400 chunks of 400 B without compression: `headroom data convert` makes them one "
                                   "contiguous run",
                                   "a window of 500 rows touches up to 6 chunks of 100 rows: convert with a larger "
                                   "--chunk"));
  EXPECT_THAT(one("/short").warnings, testing::ElementsAre());
  EXPECT_THAT(one("/short", {.window_rows = 1000}).warnings,
              testing::ElementsAre("a window of 1000 rows touches up to 6 chunks of 206 rows: convert with a larger "
                                   "--chunk"));
  EXPECT_THAT(one("/good").warnings, testing::ElementsAre());
  EXPECT_THAT(one("/pictures").warnings, testing::ElementsAre());
}

TEST_F(Inspect, NamesTheMiddleLane) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "x", H5T_STD_U8LE, {20001}, std::vector<uint8_t>(20001), {1});
  }
  EXPECT_EQ(one("/x").lane, "chunks through libhdf5");
  EXPECT_EQ(one("/x").why, "20001 chunks are too many for a table (20000)");
}

TEST_F(Inspect, AFileThatCannotBeOpenedIsASentence) {
  write_text(path_, "no HDF5 at all");
  EXPECT_EQ(inspect_file(path_, {}).problem, "'" + path_.string() +
                                                 "' is not an HDF5 file: it has no HDF5 signature; convert it or leave "
                                                 "it out");
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "x", H5T_STD_U8LE, {9000}, std::vector<uint8_t>(9000));
  }
  std::filesystem::resize_file(path_, 3000);
  EXPECT_THAT(inspect_file(path_, {}).problem, testing::HasSubstr("is truncated"));
  EXPECT_THAT(inspect_file(folder_ / "none.h5", {}).problem, testing::HasSubstr("none.h5"));
}

// Every byte of the header set wrong: a sentence or an answer, never a crash.
TEST_F(Inspect, SurvivesDamagedHeaders) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    write_dataset(file.get(), "/a/x", H5T_STD_I32LE, {64}, std::vector<int32_t>(64), {16}, 2);
    write_dataset(file.get(), "/a/y", H5T_IEEE_F64LE, {8}, std::vector<double>(8));
  }
  const std::string sound = read_text(path_);
  size_t problems = 0;
  for (size_t at = 0; at < sound.size(); at += 37) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xFF);
    write_text(path_, damaged);
    const InspectedFile file = inspect_file(path_, {});
    bool problem = !file.problem.empty();
    for (const InspectedDataset& dataset : file.datasets) problem |= !dataset.problem.empty();
    problems += problem ? 1 : 0;
  }
  EXPECT_GT(problems, 0u);
}

}  // namespace
}  // namespace headroom
