// data.normalized_cache: what is read of the copies is, to the bit, what is read of the originals and standardised; and
// no copy is used that is of other data, other statistics, or damaged.
#include "data/normalized_copies.hpp"

#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "../../runner/record/temporary_folder.hpp"
#include "arrays/array_session.hpp"
#include "data/normalizer.hpp"
#include "emg_source.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class NormalizedCopiesTest : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    emg_plugin();
    if (const char* cache = std::getenv("XDG_CACHE_HOME")) before_ = cache;
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    data_ = folder_ / "data";
    fs::create_directory(data_);
  }
  void TearDown() override {
    ArraySession::of_process()->substitute({});
    if (before_.empty()) {
      unsetenv("XDG_CACHE_HOME");
    } else {
      setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    }
    fs::permissions(data_, fs::perms::owner_all);
    TemporaryFolder::TearDown();
  }

  static RecordingSpec wavy(uint64_t records, std::vector<uint64_t> chunk = {}) {
    RecordingSpec spec{.records = records, .chunk = std::move(chunk)};
    spec.edit = [](uint64_t record, std::vector<float>&, std::vector<float>& emg) {
      for (size_t c = 0; c < emg.size(); ++c)
        emg[c] = static_cast<float>(std::sin(0.37 * static_cast<double>(record)) * static_cast<double>(c + 1) + 0.1);
    };
    return spec;
  }

  std::shared_ptr<const Source> open(const std::string& more = "") const {
    return open_emg(data_, "window_size = 10\nskip_ik_failures = false\n" + more);
  }
  static Split whole(const Source& source) { return {"train", 0, source.groups(0)}; }
  static Normalizer measured(const Source& source) { return Normalizer::measure(source, whole(source), "exact", 0); }
  static NormalizedCopies use(std::shared_ptr<const Source> source, const Normalizer& normalizer) {
    const auto reopen = []() -> std::shared_ptr<const Source> { throw Error(Exit::bug, "test", "not needed"); };
    return use_normalized_copies(std::move(source), normalizer, reopen, [](const std::string&) {});
  }

  // Every sample of every split, standardised by what is left to do.
  static std::vector<EmgSample> all_samples(const Source& source, const Normalizer& left, bool augment = false) {
    std::vector<EmgSample> samples;
    for (uint64_t i = 0; i < source.length(0); ++i) {
      samples.push_back(read_sample(source, i, /*key=*/7 * i, augment));
      int64_t shape[] = {1, source.fields()[0].shape[0], source.fields()[0].shape[1]};
      std::vector<DLTensor> tensors(3);
      tensors[0] = {samples.back().emg.data(), {kDLCPU, 0}, 3, source.fields()[0].dtype, shape, nullptr, 0};
      int64_t none[] = {0};
      tensors[1].shape = tensors[2].shape = none;
      left.apply(source.fields(), tensors);
    }
    return samples;
  }
  static void expect_same(const std::vector<EmgSample>& found, const std::vector<EmgSample>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(std::memcmp(found[i].emg.data(), expected[i].emg.data(), expected[i].emg.size() * sizeof(float)), 0)
          << i;
      ASSERT_EQ(found[i].angles, expected[i].angles) << i;
      ASSERT_EQ(found[i].valid, expected[i].valid) << i;
    }
  }

  fs::path copy_of(const std::string& name) const { return data_ / (name + ".normalized.h5"); }

  fs::path data_;
  std::string before_;
};

TEST_F(NormalizedCopiesTest, GiveTheSameValuesToTheBit) {
  write_recording(data_ / "a.hdf5", wavy(300));
  write_recording(data_ / "b.hdf5", wavy(250, {32}));
  for (const char* more : {"", "stride = 7"}) {
    const auto source = open(more);
    const Normalizer normalizer = measured(*source);
    const auto expected = all_samples(*source, normalizer, /*augment=*/true);
    const NormalizedCopies copies = use(source, normalizer);
    ASSERT_EQ(copies.fields, std::vector<std::string>{"emg"}) << testing::PrintToString(copies.lines);
    EXPECT_TRUE(normalizer.without(copies.fields).statistics().empty());
    expect_same(all_samples(*open(more), normalizer.without(copies.fields), /*augment=*/true), expected);
    ArraySession::of_process()->substitute({});
  }
}

TEST_F(NormalizedCopiesTest, TheNextStartFindsThemAndNoSourceSeesThem) {
  write_recording(data_ / "a.hdf5", wavy(300));
  const auto source = open();
  const Normalizer normalizer = measured(*source);
  const auto first = use(source, normalizer);
  ASSERT_EQ(first.lines.size(), 1u);
  EXPECT_TRUE(first.lines[0].starts_with("normalised copies: 1 of 1 files written, ")) << first.lines[0];
  ASSERT_TRUE(fs::exists(copy_of("a.hdf5")));
  const auto written = fs::last_write_time(copy_of("a.hdf5"));
  ArraySession::of_process()->substitute({});
  const auto again = open();
  EXPECT_EQ(again->length(0), source->length(0));
  EXPECT_EQ(again->files(), source->files());
  EXPECT_EQ(use(again, measured(*again)).lines,
            std::vector<std::string>{"normalised copies: 1 files as they were left by an earlier run"});
  EXPECT_EQ(fs::last_write_time(copy_of("a.hdf5")), written);
  for (const auto& entry : fs::directory_iterator(data_))
    EXPECT_EQ(entry.path().filename().string().find("partial"), std::string::npos);
}

TEST_F(NormalizedCopiesTest, AChangedOriginalGetsANewCopy) {
  write_recording(data_ / "a.hdf5", wavy(300));
  const Normalizer normalizer = measured(*open());
  use(open(), normalizer);
  ArraySession::of_process()->substitute({});
  fs::remove(data_ / "a.hdf5");
  write_recording(data_ / "a.hdf5", {.records = 300});
  const auto expected = all_samples(*open(), normalizer);
  const auto copies = use(open(), normalizer);
  ASSERT_EQ(copies.fields.size(), 1u);
  expect_same(all_samples(*open(), {}), expected);
}

TEST_F(NormalizedCopiesTest, OtherStatisticsLeaveTheCopyOfAnotherRunAlone) {
  write_recording(data_ / "a.hdf5", wavy(300));
  const auto source = open();
  use(source, measured(*source));
  ArraySession::of_process()->substitute({});
  const std::string before = read_text(copy_of("a.hdf5"));
  const Normalizer other = Normalizer::measure(*source, whole(*source), "sampled", 3);
  const auto expected = all_samples(*source, other);
  ASSERT_EQ(use(source, other).fields.size(), 1u);
  expect_same(all_samples(*open(), {}), expected);
  EXPECT_TRUE(read_text(copy_of("a.hdf5")) == before);
  EXPECT_FALSE(fs::is_empty(folder_ / "cache/headroom/normalized"));
  ArraySession::of_process()->substitute({});
  EXPECT_EQ(use(source, other).lines,
            std::vector<std::string>{"normalised copies: 1 files as they were left by an earlier run"});
}

TEST_F(NormalizedCopiesTest, ADamagedCopyIsWrittenAgain) {
  write_recording(data_ / "a.hdf5", wavy(300));
  const auto source = open();
  const Normalizer normalizer = measured(*source);
  const auto expected = all_samples(*source, normalizer);
  use(source, normalizer);
  ArraySession::of_process()->substitute({});
  const std::string whole_copy = read_text(copy_of("a.hdf5"));
  for (const std::string& damaged :
       {std::string(), std::string("not HDF5"), whole_copy.substr(0, whole_copy.size() / 2)}) {
    write_text(copy_of("a.hdf5"), damaged);
    ASSERT_EQ(use(source, normalizer).fields.size(), 1u);
    expect_same(all_samples(*open(), {}), expected);
    ArraySession::of_process()->substitute({});
  }
}

TEST_F(NormalizedCopiesTest, WhereTheFolderCannotBeWrittenTheyLieInTheUsersCache) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  write_recording(data_ / "a.hdf5", wavy(300));
  fs::permissions(data_, fs::perms::owner_read | fs::perms::owner_exec);
  const auto source = open();
  const Normalizer normalizer = measured(*source);
  const auto expected = all_samples(*source, normalizer);
  ASSERT_EQ(use(source, normalizer).fields.size(), 1u);
  expect_same(all_samples(*open(), {}), expected);
}

// A folder in the way, for root too.
TEST_F(NormalizedCopiesTest, WhereTheirPlaceIsTakenTheyLieInTheUsersCache) {
  write_recording(data_ / "a.hdf5", wavy(300));
  const auto source = open();
  const Normalizer normalizer = measured(*source);
  const auto expected = all_samples(*source, normalizer);
  fs::create_directories(copy_of("a.hdf5") / "in the way");
  ASSERT_EQ(use(source, normalizer).fields.size(), 1u);
  EXPECT_FALSE(fs::is_empty(folder_ / "cache/headroom/normalized"));
  expect_same(all_samples(*open(), {}), expected);
}

TEST_F(NormalizedCopiesTest, WhereThereIsNoPlaceAtAllTheOriginalsAreRead) {
  write_recording(data_ / "a.hdf5", wavy(300));
  const auto source = open();
  const Normalizer normalizer = measured(*source);
  fs::create_directories(copy_of("a.hdf5") / "in the way");
  write_text(folder_ / "file", "");
  setenv("XDG_CACHE_HOME", (folder_ / "file").c_str(), 1);
  const NormalizedCopies copies = use(source, normalizer);
  EXPECT_TRUE(copies.fields.empty());
  ASSERT_EQ(copies.lines.size(), 1u);
  EXPECT_TRUE(copies.lines[0].starts_with("normalised copies: not used, cannot ")) << copies.lines[0];
  expect_same(all_samples(*open(), normalizer), all_samples(*source, normalizer));
}

TEST_F(NormalizedCopiesTest, WhatIsNotDeliveredAsItIsStoredHasNone) {
  write_recording(data_ / "a.hdf5", wavy(300));
  for (const char* more : {"padding = [2, 0]", "channel_rotation = 1"}) {
    const auto source = open(more);
    const NormalizedCopies copies = use(source, measured(*source));
    EXPECT_TRUE(copies.fields.empty());
    EXPECT_EQ(copies.lines, std::vector<std::string>{"normalised copies: none of field 'emg', which datasource "
                                                     "'emg_hdf5' does not deliver as it is stored"});
  }
  EXPECT_FALSE(fs::exists(copy_of("a.hdf5")));
}

TEST_F(NormalizedCopiesTest, AnOriginalThatCannotBeReadIsALine) {
  write_recording(data_ / "a.hdf5", wavy(300, {32}));
  const auto source = open();
  const Normalizer normalizer = measured(*source);
  fs::resize_file(data_ / "a.hdf5", fs::file_size(data_ / "a.hdf5") / 2);
  const NormalizedCopies copies = use(source, normalizer);
  EXPECT_TRUE(copies.fields.empty());
  ASSERT_EQ(copies.lines.size(), 1u);
  EXPECT_FALSE(fs::exists(copy_of("a.hdf5")));
}

TEST_F(NormalizedCopiesTest, JitterAndRotationAreAugmentation) {
  write_recording(data_ / "a.hdf5", wavy(300));
  EXPECT_FALSE(open()->augments());
  EXPECT_TRUE(open("stride = 2")->augments());
  EXPECT_FALSE(open("stride = 2\njitter = false")->augments());
  EXPECT_TRUE(open("channel_rotation = 1")->augments());
}

}  // namespace
}  // namespace headroom
