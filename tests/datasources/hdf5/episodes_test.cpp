// Flat replay buffers, as diffusion policy writes them: the rows of all episodes end to end, and where each ends.
#include "hdf5_source.hpp"
#include "headroom/random.h"

namespace headroom {
namespace {

class Episodes : public Hdf5Folder {
 protected:
  void SetUp() override {
    Hdf5Folder::SetUp();
    hdf5_plugin();
    const Hdf5Lock lock;
    const Handle file = create_file(path());
    write_dataset(file.get(), "data/state", H5T_IEEE_F32LE, {15, 2}, counting<float>(30));
    write_dataset(file.get(), "data/action", H5T_IEEE_F32LE, {15}, counting<float>(15));
    const auto integers = [&](const std::string& name, const std::vector<int64_t>& held) {
      write_dataset(file.get(), name, H5T_STD_I64LE, {held.size()}, held);
    };
    integers("meta/episode_ends", {5, 7, 15});
    integers("meta/falling", {5, 4, 15});
    integers("meta/twice", {5, 5, 15});
    integers("meta/beyond", {5, 16});
    integers("meta/early", {5, 9});
    integers("meta/none", {0});
    integers("meta/val_mask", {0, 1, 0});
    integers("meta/train_mask", {1, 0, 1});
    integers("meta/row_mask", {1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
    integers("meta/torn_mask", {1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    integers("meta/other_mask", {1, 0});
    integers("meta/wide_mask", {1, 0, 1, 1});
  }
  std::filesystem::path path() const { return folder_ / "buffer.h5"; }
  std::string says(const std::string& dataset, const std::string& more = "") const {
    return sentence(path(), "episode_ends = \"" + dataset + "\"\n" + fields + more);
  }

  const std::string fields = R"(
fields = [
  { name = "state", dataset = "data/state", rows = "row" },
  { name = "action", dataset = "data/action", length = 3, pad = "edge", pad_mask = "is_pad" },
  { name = "before", dataset = "data/action", length = 2, offset = -1, pad = "zeros" },
]
)";
  const std::string ends = "episode_ends = \"meta/episode_ends\"\n";
};

TEST_F(Episodes, AreGroupsThatWindowsStayIn) {
  const auto source = open_hdf5(path(), ends + fields);
  const auto groups = source->groups(0);
  ASSERT_EQ(groups.size(), 3u);
  const char* names[] = {"buffer:episode 0", "buffer:episode 1", "buffer:episode 2"};
  const uint64_t counts[] = {5, 2, 8}, begins[] = {0, 5, 7}, lasts[] = {4, 6, 14};
  for (size_t e = 0; e < 3; ++e) {
    EXPECT_EQ(groups[e].name, names[e]);
    EXPECT_EQ(groups[e].first, begins[e]);
    EXPECT_EQ(groups[e].count, counts[e]);
    for (uint64_t row = begins[e]; row <= lasts[e]; ++row) {
      const Sample sample = read_sample(*source, row);
      EXPECT_EQ(values<float>(sample, "state")[0], static_cast<float>(2 * row));
      const auto action = values<float>(sample, "action"), before = values<float>(sample, "before");
      const auto is_pad = values<uint8_t>(sample, "is_pad");
      for (uint64_t k = 0; k < 3; ++k) {
        EXPECT_EQ(action[k], static_cast<float>(std::min(row + k, lasts[e]))) << row;
        EXPECT_EQ(is_pad[k], row + k > lasts[e] ? 1 : 0) << row;
      }
      EXPECT_EQ(before[0], row == begins[e] ? 0.0f : static_cast<float>(row - 1)) << row;
    }
  }
}

// Rows are counted from the episode's first, and what a field pads lies outside of it.
TEST_F(Episodes, SayWhichOfTheirRowsASampleShows) {
  const auto source = open_hdf5(path(), ends + fields);
  const auto shown = [&](uint32_t field, uint64_t index) {
    const auto rows = source->recorded_rows(field, 0, index);
    return rows ? std::vector{rows->first, static_cast<int64_t>(rows->rows), static_cast<int64_t>(rows->length)}
                : std::vector<int64_t>();
  };
  EXPECT_EQ(shown(0, 3), (std::vector<int64_t>{3, 1, 5})) << "one row";
  EXPECT_EQ(shown(1, 4), (std::vector<int64_t>{4, 3, 5})) << "two beyond the end";
  EXPECT_EQ(shown(2, 7), (std::vector<int64_t>{-1, 2, 8})) << "one before the beginning of episode 2";
  EXPECT_EQ(shown(1, 9), (std::vector<int64_t>{2, 3, 8}));
  EXPECT_TRUE(shown(3, 0).empty()) << "a mask";
  const auto rows = open_hdf5(path(), "sample = \"rows\"\nfields = [ { name = \"a\", dataset = \"data/action\" } ]");
  EXPECT_FALSE(rows->recorded_rows(0, 0, 0)) << "rows that belong to no sequence";
}

TEST_F(Episodes, RowsAcrossASampleAreNone) {
  const auto source = open_hdf5(path(), ends + R"(
window_size = 3
fields = [
  { name = "across", dataset = "data/state", permute = [1, 0] },
  { name = "whole", dataset = "data/state", rows = "all" },
  { name = "along", dataset = "data/state" },
]
)");
  EXPECT_FALSE(source->recorded_rows(0, 0, 0));
  EXPECT_FALSE(source->recorded_rows(1, 0, 0));
  EXPECT_TRUE(source->recorded_rows(2, 0, 0));
}

TEST_F(Episodes, WithoutPaddingHoldEveryWindow) {
  const auto source = open_hdf5(path(), ends + "fields = [ { name = \"a\", dataset = \"data/action\", length = 4 } ]");
  ASSERT_EQ(source->groups(0).size(), 2u);
  EXPECT_EQ(source->groups(0)[1].name, "buffer:episode 2");
  EXPECT_EQ(source->length(0), 2u + 5u);
  EXPECT_EQ(values<float>(read_sample(*source, 1), "a"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(values<float>(read_sample(*source, 2), "a"), (std::vector<float>{7, 8, 9, 10}));
}

TEST_F(Episodes, JitterAndDrawsStayInTheEpisode) {
  for (const std::string how : {"sample = \"one_per_group\"\n", "stride = 3\n"}) {
    const auto source =
        open_hdf5(path(), ends + how + "fields = [ { name = \"a\", dataset = \"data/action\", length = 2 } ]");
    for (const Group& group : source->groups(0)) {
      const float begin = group.name == "buffer:episode 0" ? 0.0f : group.name == "buffer:episode 1" ? 5.0f : 7.0f;
      const float last = group.name == "buffer:episode 0" ? 4.0f : group.name == "buffer:episode 1" ? 6.0f : 14.0f;
      for (uint64_t i = group.first; i < group.first + group.count; ++i) {
        for (uint64_t key = 0; key < 50; ++key) {
          const auto action = values<float>(read_sample(*source, i, hr_sample_key(1, 0, 0, key), true), "a");
          ASSERT_GE(action[0], begin) << how;
          ASSERT_LE(action[1], last) << how;
        }
      }
    }
  }
}

// By episode, as diffusion policy has them, or by row; each names whole episodes.
TEST_F(Episodes, SplitsTakeWholeOnes) {
  for (const char* train : {"mask = \"meta/train_mask\"", "mask = \"meta/row_mask\""}) {
    const auto source = open_hdf5(
        path(), ends + fields + "splits = [ { name = \"train\", " + train + " }, { name = \"val\", rows = [5, 7] } ]");
    ASSERT_EQ(source->groups(0).size(), 2u) << train;
    EXPECT_EQ(source->groups(0)[1].name, "buffer:episode 2");
    EXPECT_EQ(source->length(0), 13u);
    EXPECT_EQ(source->length(1), 2u);
  }
  EXPECT_EQ(says("meta/episode_ends", "splits = [ { name = \"train\", rows = [0, 6] } ]"),
            "[hdf5] split 'train' takes a part of episode 1 (rows 5 to 6) of DIR/buffer.h5; an episode stays whole");
  EXPECT_EQ(says("meta/episode_ends", "splits = [ { name = \"train\", mask = \"meta/torn_mask\" } ]"),
            "[hdf5] split 'train' takes a part of episode 0 (rows 0 to 4) of DIR/buffer.h5; an episode stays whole");
  EXPECT_EQ(says("meta/episode_ends",
                 "splits = [ { name = \"train\", mask = \"meta/train_mask\" }, { name = \"val\", rows = [0, 5] } ]"),
            "[hdf5] buffer:episode 0 is in the splits 'train' and 'val'; a sequence belongs to one");
  EXPECT_EQ(says("meta/episode_ends", "splits = [ { name = \"train\", mask = \"meta/other_mask\" } ]"),
            "[hdf5] split 'train': '/meta/other_mask' of DIR/buffer.h5 has 2 values, which are neither the 15 rows nor "
            "the 3 episodes; give one for each");
  EXPECT_EQ(says("meta/episode_ends", "splits = [ { name = \"train\", mask = \"meta/wide_mask\" } ]"),
            "[hdf5] split 'train': '/meta/wide_mask' of DIR/buffer.h5 has 4 values, which are neither the 15 rows nor "
            "the 3 episodes; give one for each");
}

TEST_F(Episodes, EndsThatMakeNoSenseAreSentences) {
  EXPECT_EQ(says("meta/falling"),
            "[hdf5] '/meta/falling' of DIR/buffer.h5 has 4 as end of episode 1, which begins at row 5; each end is the "
            "row after an episode's last");
  EXPECT_EQ(says("meta/twice"),
            "[hdf5] '/meta/twice' of DIR/buffer.h5 has 5 as end of episode 1, which begins at row 5; each end is the "
            "row after an episode's last");
  EXPECT_EQ(says("meta/none"),
            "[hdf5] '/meta/none' of DIR/buffer.h5 has 0 as end of episode 0, which begins at row 0; each end is the "
            "row after an episode's last");
  EXPECT_EQ(says("meta/beyond"),
            "[hdf5] '/meta/beyond' of DIR/buffer.h5 has 16 as end of episode 1, but its fields have 15 rows; mend the "
            "file");
  EXPECT_EQ(says("data/action"),
            "[hdf5] episode_ends: '/data/action' of DIR/buffer.h5 does not hold integers; one axis of integers is "
            "needed");
  EXPECT_EQ(says("meta/end"),
            "[hdf5] episode_ends: 'DIR/buffer.h5' has no '/meta/end'; group '/meta' holds datasets 'beyond', 'early', "
            "'episode_ends', 'falling', 'none', 'other_mask', 'row_mask', 'torn_mask' and 4 more");
}

// Buffers that were made larger than what was recorded.
TEST_F(Episodes, RowsAfterTheLastEndAreNoSamples) {
  const auto source = open_hdf5(path(), "episode_ends = \"meta/early\"\n" + fields);
  EXPECT_EQ(source->length(0), 9u);
}

}  // namespace
}  // namespace headroom
