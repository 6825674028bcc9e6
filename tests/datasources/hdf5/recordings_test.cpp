// What users' recordings have beside the plain layouts: numbered datasets, axes in another order, names and units.
#include "hdf5_source.hpp"

namespace headroom {
namespace {

using Recordings = Hdf5Folder;
using testing::HasSubstr;

// States [rows, 2] and actions [rows, 3] of episodes 0, 1 and 10, all in one group.
void write_numbered(const std::filesystem::path& path, const std::string& group = "") {
  const Hdf5Lock lock;
  const Handle file = create_file(path);
  for (const size_t episode : {0u, 1u, 10u}) {
    const std::string number = std::to_string(episode);
    const size_t rows = 4 + episode;
    write_dataset(file.get(), group + "/states_" + number, H5T_IEEE_F32LE, {rows, 2},
                  counting<float>(2 * rows, 100 * episode));
    write_dataset(file.get(), group + "/actions_" + number, H5T_IEEE_F32LE, {rows, 3},
                  counting<float>(3 * rows, 1000 * episode));
  }
  write_dataset(file.get(), group + "/states_all/mean", H5T_IEEE_F32LE, {2}, counting<float>(2));
}

constexpr const char* kNumbered = R"(
window_size = 3
fields = [
  { name = "state", dataset = "states_*", rows = "row" },
  { name = "action", dataset = "actions_*" },
])";

TEST_F(Recordings, NumberedDatasetsAreSequences) {
  write_numbered(folder_ / "session.hdf5");
  const auto source = open_hdf5(folder_, kNumbered);
  const auto groups = source->groups(0);
  ASSERT_EQ(groups.size(), 3u);
  const char* names[] = {"session:0", "session:1", "session:10"};
  const uint64_t counts[] = {2, 3, 12};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(groups[i].name, names[i]);
    EXPECT_EQ(groups[i].count, counts[i]);
  }
  const Sample sample = read_sample(*source, groups[2].first + 4);
  EXPECT_EQ(values<float>(sample, "state"), (std::vector<float>{1008, 1009}));
  EXPECT_EQ(values<float>(sample, "action")[0], 10012.0f);
}

TEST_F(Recordings, NumberedDatasetsLieInGroupsToo) {
  write_numbered(folder_ / "a.hdf5", "/subject_1");
  const auto source = open_hdf5(folder_, std::string("groups = \"/*\"") + kNumbered);
  ASSERT_EQ(source->groups(0).size(), 3u);
  EXPECT_EQ(source->groups(0)[1].name, "a:/subject_1:1");
}

TEST_F(Recordings, ANumberThatOneFieldLacksIsAnErrorThatNamesIt) {
  write_numbered(folder_ / "a.hdf5");
  {
    const Hdf5Lock lock;
    const Handle file(H5Fopen((folder_ / "a.hdf5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    ASSERT_GE(H5Ldelete(file.get(), "/actions_10", H5P_DEFAULT), 0);
  }
  Exit code{};
  EXPECT_THAT(sentence(folder_, kNumbered, &code), HasSubstr("/actions_10"));
  EXPECT_EQ(code, Exit::data);
}

TEST_F(Recordings, StarsThatMeanNothingAreRefused) {
  write_numbered(folder_ / "a.hdf5");
  const auto said = [&](const std::string& dataset) {
    return sentence(folder_, "window_size = 3\nfields = [{ name = \"x\", dataset = \"" + dataset + "\" }]");
  };
  EXPECT_THAT(said("run_*/states"),
              HasSubstr("has a * in a group of its dataset 'run_*/states'; name groups as groups"));
  EXPECT_THAT(said("*_*"), HasSubstr("has more than one * in its dataset '*_*'"));
  EXPECT_THAT(said("velocities_*"), HasSubstr("'/velocities_*' of DIR/a.hdf5 (field 'x') matches no dataset"));
}

// Channels first, as EMG toolboxes write them, and pictures as PyTorch has them.
TEST_F(Recordings, AxesComeInTheOrderOfPermute) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(folder_ / "a.hdf5");
    write_dataset(file.get(), "/emg", H5T_IEEE_F32LE, {2, 10}, counting<float>(20));
    write_dataset(file.get(), "/image", H5T_STD_U8LE, {10, 3, 2, 4}, counting<uint8_t>(240));
  }
  const auto source = open_hdf5(folder_, R"(
window_size = 4
fields = [
  { name = "emg", dataset = "emg", axis = 1, permute = [1, 0], axes = ["time", "channel"], normalize = true },
  { name = "image", dataset = "image", rows = "row", permute = [0, 2, 3, 1] },
])");
  EXPECT_EQ(source->fields()[0].shape, (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(source->fields()[0].channel_axis, 1);
  EXPECT_EQ(source->fields()[1].shape, (std::vector<int64_t>{2, 4, 3}));
  const Sample sample = read_sample(*source, 5);
  EXPECT_EQ(values<float>(sample, "emg"), (std::vector<float>{5, 15, 6, 16, 7, 17, 8, 18}));
  const auto pixels = values<uint8_t>(sample, "image");
  for (size_t row = 0; row < 2; ++row) {
    for (size_t column = 0; column < 4; ++column) {
      for (size_t colour = 0; colour < 3; ++colour)
        ASSERT_EQ(pixels[(row * 4 + column) * 3 + colour], 5 * 24 + colour * 8 + row * 4 + column);
    }
  }
  EXPECT_THAT(sentence(folder_, "window_size = 4\nfields = [{ name = \"emg\", dataset = \"emg\", permute = [0, 0] }]"),
              HasSubstr("(field 'emg') has 2 axes; permute must name each of 0 to 1 once"));
}

// Windows that reach beyond a recording's end, with the rows not first in the file.
TEST_F(Recordings, PermutedWindowsArePadded) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(folder_ / "a.hdf5");
    write_dataset(file.get(), "/emg", H5T_IEEE_F32LE, {2, 5}, counting<float>(10));
    write_dataset(file.get(), "/label", H5T_IEEE_F32LE, {5}, counting<float>(5));
  }
  const auto source = open_hdf5(folder_, R"(
fields = [
  { name = "emg", dataset = "emg", axis = 1, permute = [1, 0], length = 3, pad = "edge" },
  { name = "label", dataset = "label", rows = "row" },
])");
  EXPECT_EQ(values<float>(read_sample(*source, 3), "emg"), (std::vector<float>{3, 8, 4, 9, 4, 9}));
}

void write_named(const std::filesystem::path& path, const std::vector<const char*>& names, const char* units) {
  const Hdf5Lock lock;
  const Handle file = create_file(path);
  write_dataset(file.get(), "/hand/angles", H5T_IEEE_F32LE, {6, 3}, counting<float>(18));
  const Handle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), H5T_VARIABLE);
  const hsize_t count = names.size();
  const Handle list(H5Screate_simple(1, &count, nullptr)), scalar(H5Screate(H5S_SCALAR));
  const Handle group(H5Gopen2(file.get(), "/hand", H5P_DEFAULT)), root(H5Gopen2(file.get(), "/", H5P_DEFAULT));
  const Handle of_group(H5Acreate2(group.get(), "joints", type.get(), list.get(), H5P_DEFAULT, H5P_DEFAULT));
  const Handle of_root(H5Acreate2(root.get(), "units", type.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
  EXPECT_GE(H5Awrite(of_group.get(), type.get(), names.data()), 0);
  EXPECT_GE(H5Awrite(of_root.get(), type.get(), &units), 0);
}

TEST_F(Recordings, ChannelsHaveNamesAndUnits) {
  write_named(folder_ / "a.hdf5", {"thumb", "index", "wrist"}, "[\"rad\", \"rad\", \"mm\"]");
  const auto source = open_hdf5(folder_, R"(
window_size = 2
fields = [
  { name = "told", dataset = "hand/angles", channel_names = ["a", "b", "c"], channel_units = ["deg"] },
  { name = "found", dataset = "hand/angles", normalize = true, channel_names_attribute = "joints", channel_units_attribute = "units" },
  { name = "none", dataset = "hand/angles" },
])");
  const Field &told = source->fields()[0], &found = source->fields()[1];
  ASSERT_EQ(told.channels.size(), 3u);
  EXPECT_EQ(told.channel_axis, 1);
  EXPECT_FALSE(told.normalize);
  EXPECT_EQ(told.channels[2].name, "c");
  EXPECT_EQ(told.channels[2].unit, "deg");
  ASSERT_EQ(found.channels.size(), 3u);
  EXPECT_EQ(found.channels[2].name, "wrist");
  EXPECT_EQ(found.channels[2].unit, "mm");
  EXPECT_EQ(found.channels[2].std, 1.0);
  EXPECT_TRUE(source->fields()[2].channels.empty());
}

TEST_F(Recordings, ChannelsThatDoNotSuitAreRefused) {
  write_named(folder_ / "a.hdf5", {"thumb", "index"}, "rad");
  const auto said = [&](const std::string& keys) {
    return sentence(folder_, "window_size = 2\nfields = [{ name = \"x\", dataset = \"/hand/angles\", " + keys + " }]");
  };
  EXPECT_THAT(
      said("channel_names_attribute = \"joints\""),
      HasSubstr("'/hand/angles' of DIR/a.hdf5 (field 'x'): there are 2 names for 3 channels; give one for each"));
  EXPECT_THAT(said("channel_names_attribute = \"fingers\""),
              HasSubstr("has no attribute 'fingers', nor has a group above it"));
  EXPECT_THAT(said("channel_names = [\"a\"], channel_names_attribute = \"joints\""), HasSubstr("set one of them"));
  EXPECT_THAT(said("channel_units = [\"rad\"], channel_axis = -1"), HasSubstr("name the axis that they lie along"));
}

// Tables are converted column by column, and two may have theirs in another order.
TEST_F(Recordings, ChannelsOfAllSequencesAreTheSame) {
  const std::string field =
      R"(name = "x", dataset = "/hand/angles", channel_names_attribute = "joints", channel_units_attribute = "units")";
  const std::string settings = "window_size = 2\nfields = [{ " + field + " }]";
  write_named(folder_ / "a.hdf5", {"thumb", "index", "wrist"}, "rad");
  write_named(folder_ / "b.hdf5", {"thumb", "index", "wrist"}, "rad");
  EXPECT_EQ(open_hdf5(folder_, settings)->length(0), 10u);
  write_named(folder_ / "c.hdf5", {"index", "thumb", "wrist"}, "rad");
  EXPECT_THAT(sentence(folder_, settings),
              HasSubstr("'/hand/angles' of DIR/c.hdf5 (field 'x') has 'index' as channel 0 in its attribute 'joints', "
                        "where DIR/a.hdf5 has 'thumb'; all sequences need the same channels in the same order"));
  write_named(folder_ / "c.hdf5", {"thumb", "index", "wrist"}, "deg");
  EXPECT_THAT(sentence(folder_, settings),
              HasSubstr("has 'deg' as channel 0 in its attribute 'units', where DIR/a.hdf5 has 'rad'"));
}

// `headroom predict --input FILE` opens one recording with the run's options.
TEST_F(Recordings, OneFileIsWholeWhereSplitsNameFiles) {
  write_numbered(folder_ / "a.hdf5");
  const std::string options = std::string(kNumbered) +
                              "\nsplits = [ { name = \"train\", files = [\"b*.hdf5\"] }, "
                              "{ name = \"val\", files = [\"c*.hdf5\"] } ]";
  const auto source = open_hdf5(folder_ / "a.hdf5", options);
  EXPECT_EQ(source->splits(), std::vector<std::string>{"all"});
  EXPECT_EQ(source->length(0), 17u);
}

}  // namespace
}  // namespace headroom
