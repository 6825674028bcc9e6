// One file of images and their labels: each row is a sample, and splits are rows, masks or the host's fractions.
#include <set>

#include "data/split.hpp"
#include "hdf5_source.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;

constexpr size_t kRows = 20;

class Images : public Hdf5Folder {
 protected:
  void SetUp() override {
    Hdf5Folder::SetUp();
    hdf5_plugin();
    const Hdf5Lock lock;
    const Handle file = create_file(path());
    write_dataset(file.get(), "images", H5T_STD_U8LE, {kRows, 3, 2, 4}, counting<uint8_t>(kRows * 24), {4, 3, 2, 4}, 3);
    std::vector<int64_t> labels(kRows), train(kRows), odd(kRows);
    for (size_t i = 0; i < kRows; ++i) labels[i] = static_cast<int64_t>(i % 3);
    for (size_t i = 0; i < kRows; ++i) train[i] = i == 0 || (i > 2 && i < 9) || i == 19;
    for (size_t i = 0; i < kRows; ++i) odd[i] = train[i] == 0;
    write_dataset(file.get(), "labels", H5T_STD_I64LE, {kRows}, labels);
    write_dataset(file.get(), "masks/train", H5T_STD_U8LE, {kRows}, std::vector<uint8_t>(train.begin(), train.end()));
    write_dataset(file.get(), "masks/rest", H5T_STD_U64LE, {kRows}, std::vector<uint64_t>(odd.begin(), odd.end()));
    write_dataset(file.get(), "masks/short", H5T_STD_I64LE, {kRows - 1}, train);
    write_dataset(file.get(), "masks/codes", H5T_STD_I64LE, {kRows}, labels);
    write_dataset(file.get(), "masks/none", H5T_STD_I64LE, {kRows}, std::vector<int64_t>(kRows));
  }
  std::filesystem::path path() const { return folder_ / "images.h5"; }
  std::shared_ptr<const Source> open(const std::string& more = "") const { return open_hdf5(path(), images + more); }
  std::string says(const std::string& more, Exit* code = nullptr) const {
    return sentence(path(), images + more, code);
  }
  // The rows of a split, by their first pixels.
  static std::vector<int> rows_of(const Source& source, uint32_t split) {
    std::vector<int> rows;
    for (uint64_t i = 0; i < source.length(split); ++i) {
      const Sample sample = read_sample(source, i, 0, false, split);
      const auto first = values<uint8_t>(sample, "image")[0];
      for (int row = 0; row < static_cast<int>(kRows); ++row) {
        if (static_cast<uint8_t>(24 * row) != first) continue;
        if (values<int64_t>(sample, "label")[0] == row % 3) rows.push_back(row);
      }
    }
    return rows;
  }

  const std::string images = R"(
sample = "rows"
fields = [
  { name = "image", dataset = "images", axes = ["channel", "height", "width"] },
  { name = "label", dataset = "labels", classes = ["cat", "dog", "hen"] },
]
)";
};

TEST_F(Images, EachRowIsASampleAndAGroup) {
  const auto source = open();
  EXPECT_EQ(source->splits(), std::vector<std::string>{"all"});
  EXPECT_EQ(source->length(0), kRows);
  EXPECT_EQ(source->groups(0).size(), kRows);
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{3, 2, 4}));
  EXPECT_EQ(source->fields()[1].shape, std::vector<int64_t>{});
  EXPECT_EQ(source->class_names(1), (std::vector<std::string>{"cat", "dog", "hen"}));
  EXPECT_TRUE(source->class_names(0).empty());
  EXPECT_FALSE(source->augments());
  for (uint64_t i = 0; i < kRows; ++i) {
    const Sample sample = read_sample(*source, i, 7, true);
    EXPECT_EQ(values<uint8_t>(sample, "image"), counting<uint8_t>(24, 24 * i));
    EXPECT_EQ(values<int64_t>(sample, "label")[0], static_cast<int64_t>(i % 3));
  }
}

// As N x H x W x C files come to a model that wants channels first.
TEST_F(Images, ChannelsComeFirstByPermute) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(folder_ / "last.h5");
    write_dataset(file.get(), "images", H5T_STD_U8LE, {2, 2, 2, 3}, counting<uint8_t>(24));
  }
  const auto source = open_hdf5(folder_ / "last.h5", R"(
sample = "rows"
fields = [ { name = "image", dataset = "images", permute = [0, 3, 1, 2] } ])");
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(values<uint8_t>(read_sample(*source, 1), "image"),
            (std::vector<uint8_t>{12, 15, 18, 21, 13, 16, 19, 22, 14, 17, 20, 23}));
}

TEST_F(Images, TheHostDividesRowsByFractions) {
  const auto source = open();
  const auto divided = [&](uint64_t seed) {
    DataSection data;
    data.split = SplitFractions{0.6, 0.4, 0.0, seed};
    const Splits splits = divide(*source, data);
    std::set<uint64_t> train, all;
    for (uint64_t i = 0; i < splits.train.length(); ++i) train.insert(splits.train.source_index(i));
    all = train;
    for (uint64_t i = 0; i < splits.val.length(); ++i) all.insert(splits.val.source_index(i));
    EXPECT_EQ(train.size(), 12u);
    EXPECT_EQ(all.size(), kRows);
    return train;
  };
  EXPECT_EQ(divided(1), divided(1));
  EXPECT_NE(divided(1), divided(2));
}

TEST_F(Images, SplitsAreRangesOfRows) {
  const auto source = open(
      "splits = [ { name = \"train\", rows = [0, 12] }, { name = \"val\", rows = [12, 15] }, "
      "{ name = \"test\", rows = [15, 20] } ]");
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"train", "val", "test"}));
  EXPECT_EQ(source->length(0), 12u);
  EXPECT_EQ(rows_of(*source, 1), (std::vector<int>{12, 13, 14}));
  EXPECT_EQ(rows_of(*source, 2), (std::vector<int>{15, 16, 17, 18, 19}));
}

TEST_F(Images, SplitsAreMasksOfEitherKindOfInteger) {
  const auto source =
      open("splits = [ { name = \"train\", mask = \"masks/train\" }, { name = \"val\", mask = \"/masks/rest\" } ]");
  EXPECT_EQ(rows_of(*source, 0), (std::vector<int>{0, 3, 4, 5, 6, 7, 8, 19}));
  EXPECT_EQ(rows_of(*source, 1), (std::vector<int>{1, 2, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}));
}

// Windows stay within the rows of their split, padding included.
TEST_F(Images, WindowsDoNotLeaveTheRowsOfTheirSplit) {
  const auto source = open_hdf5(path(), R"(
fields = [ { name = "w", dataset = "labels", length = 3, offset = -1, pad = "edge", pad_mask = "p" } ]
splits = [ { name = "train", rows = [0, 10] }, { name = "val", rows = [10, 20] } ])");
  EXPECT_EQ(source->length(0), 10u);
  EXPECT_EQ(source->groups(1)[0].name, "images:rows 10 to 19");
  const Sample last = read_sample(*source, 9, 0, false, 0), first = read_sample(*source, 0, 0, false, 1);
  EXPECT_EQ(values<int64_t>(last, "w"), (std::vector<int64_t>{8 % 3, 9 % 3, 9 % 3}));
  EXPECT_EQ(values<uint8_t>(last, "p"), (std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(values<int64_t>(first, "w"), (std::vector<int64_t>{10 % 3, 10 % 3, 11 % 3}));
  EXPECT_EQ(values<uint8_t>(first, "p"), (std::vector<uint8_t>{1, 0, 0}));
}

TEST_F(Images, SplitsThatCannotBeFollowedAreSentences) {
  EXPECT_EQ(says("splits = [ { name = \"train\", rows = [0, 12] }, { name = \"val\", rows = [11, 20] } ]"),
            "[hdf5] row 11 of images is in the splits 'train' and 'val'; a row belongs to one");
  EXPECT_EQ(says("splits = [ { name = \"train\", rows = [0, 21] } ]"),
            "[hdf5] split 'train' ends at row 21, but DIR/images.h5 has 20 rows");
  EXPECT_EQ(says("splits = [ { name = \"train\", rows = [5, 5] } ]"),
            "[hdf5] split 'train' needs rows = [from, end], the first row and the one after the last");
  EXPECT_EQ(says("splits = [ { name = \"train\", rows = [0, 5], mask = \"masks/train\" } ]"),
            "[hdf5] split 'train' needs one of files (patterns), mask (a dataset of group names, or of a 0 or 1 for "
            "each row) and rows = [from, end]");
  Exit code{};
  EXPECT_EQ(says("splits = [ { name = \"train\", mask = \"masks/short\" } ]", &code),
            "[hdf5] split 'train': '/masks/short' of DIR/images.h5 has 19 values for 20 rows; give one for each row");
  EXPECT_EQ(code, Exit::data);
  EXPECT_EQ(says("splits = [ { name = \"train\", mask = \"masks/codes\" } ]"),
            "[hdf5] split 'train': '/masks/codes' of DIR/images.h5 has 2 at 2; a mask holds 0 and 1");
  EXPECT_EQ(says("splits = [ { name = \"train\", mask = \"masks/none\" } ]"),
            "[hdf5] split 'train' takes none of the 1 sequences of DIR/images.h5");
  EXPECT_EQ(says("splits = [ { name = \"train\", mask = \"images\" } ]"),
            "[hdf5] split 'train': mask: '/images' of DIR/images.h5 has shape [20, 3, 2, 4]; one axis of integers is "
            "needed");
  std::filesystem::copy_file(path(), folder_ / "more.h5");
  EXPECT_EQ(sentence(folder_, images + "splits = [ { name = \"train\", rows = [0, 12] } ]"),
            "[hdf5] split 'train' names rows, which are those of one sequence, but DIR has 2; name files or a mask");
}

TEST_F(Images, RowsHaveNoNeighbours) {
  const auto said = [&](const std::string& keys) {
    return sentence(path(), "sample = \"rows\"\nfields = [ { name = \"x\", dataset = \"labels\", " + keys + " } ]");
  };
  const std::string sentence =
      "[hdf5] field 'x' takes rows beside the sample's own, but sample = \"rows\" has rows that belong to no sequence; "
      "set sample = \"windows\", or take out rows, length and offset";
  EXPECT_EQ(said("rows = \"window\", length = 3"), sentence);
  EXPECT_EQ(said("offset = 1"), sentence);
  EXPECT_EQ(says("episode_ends = \"labels\""),
            "[hdf5] episode_ends ties rows together, and sample = \"rows\" parts them; take one of them out");
}

}  // namespace
}  // namespace headroom
