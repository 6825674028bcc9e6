// Groups as sequences, and splits that a layout defines: robomimic's files.
#include "hdf5_source.hpp"

namespace headroom {
namespace {

using Splits = Hdf5Folder;

constexpr size_t kBytes = 14;  // of a name

// As robomimic writes them: names of fixed length; `variable`: as h5py writes lists of str.
void write_mask(hid_t file, const std::string& name, const std::vector<std::string>& demos, bool variable) {
  const Handle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), variable ? H5T_VARIABLE : kBytes);
  if (!variable) H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  if (variable) {
    std::vector<const char*> texts;
    for (const std::string& demo : demos) texts.push_back(demo.c_str());
    return write_dataset(file, name, type.get(), {demos.size()}, texts);
  }
  std::vector<char> bytes(kBytes * demos.size(), '\0');
  for (size_t i = 0; i < demos.size(); ++i) demos[i].copy(bytes.data() + kBytes * i, kBytes);
  write_dataset(file, name, type.get(), {demos.size()}, bytes);
}

void write_demos(const std::filesystem::path& path, size_t first, bool variable,
                 const std::vector<std::string>& valid = {"demo_1", "demo_10"}) {
  const Hdf5Lock lock;
  const Handle file = create_file(path);
  for (const size_t demo : {0u, 1u, 2u, 10u}) {
    const std::string group = "/data/demo_" + std::to_string(demo);
    const size_t rows = 5 + demo;
    write_dataset(file.get(), group + "/obs/robot0_eef_pos", H5T_IEEE_F64LE, {rows, 3},
                  counting<double>(3 * rows, first + 100 * demo));
    write_dataset(file.get(), group + "/actions", H5T_IEEE_F64LE, {rows, 7},
                  counting<double>(7 * rows, first + 1000 * demo));
  }
  write_mask(file.get(), "/mask/train", {"demo_0", "demo_2"}, variable);
  write_mask(file.get(), "/mask/valid", valid, variable);
}

constexpr const char* kDemos = R"(
groups = "/data/*"
window_size = 4
fields = [
  { name = "position", dataset = "obs/robot0_eef_pos", rows = "row" },
  { name = "actions", dataset = "actions", dtype = "float64" },
]
)";
constexpr const char* kMasks = R"(
splits = [ { name = "train", mask = "/mask/train" }, { name = "val", mask = "/mask/valid" } ]
)";

TEST_F(Splits, GroupsAreSequences) {
  write_demos(folder_ / "low_dim.hdf5", 0, false);
  const auto source = open_hdf5(folder_ / "low_dim.hdf5", kDemos);
  EXPECT_EQ(source->splits(), std::vector<std::string>{"all"});
  ASSERT_EQ(source->groups(0).size(), 4u);
  const char* names[] = {"low_dim:/data/demo_0", "low_dim:/data/demo_1", "low_dim:/data/demo_10",
                         "low_dim:/data/demo_2"};
  const uint64_t counts[] = {2, 3, 12, 4};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(source->groups(0)[i].name, names[i]);
    EXPECT_EQ(source->groups(0)[i].count, counts[i]);
  }
  const auto actions = library_values<double>(folder_ / "low_dim.hdf5", "/data/demo_10/actions", H5T_NATIVE_DOUBLE);
  for (uint64_t t = 0; t < 12; ++t) {
    const Sample sample = read_sample(*source, 5 + t);
    const auto got = values<double>(sample, "actions");
    for (size_t k = 0; k < 28; ++k) ASSERT_EQ(got[k], actions[7 * t + k]);
    ASSERT_EQ(values<float>(sample, "position")[0], static_cast<float>(1000 + 3 * t));
  }
}

// What draws nothing may be kept in the host's cache.
TEST_F(Splits, TellWhetherTrainingReadsDraw) {
  write_demos(folder_ / "a.hdf5", 0, false);
  const auto draws = [&](const std::string& more) { return open_hdf5(folder_, kDemos + more)->augments(); };
  EXPECT_FALSE(draws(""));
  EXPECT_TRUE(draws("stride = 2"));
  EXPECT_FALSE(draws("stride = 2\njitter = false"));
  EXPECT_TRUE(draws("sample = \"one_per_group\""));
}

TEST_F(Splits, FollowMasksOfEitherKindOfString) {
  for (const bool variable : {false, true}) {
    write_demos(folder_ / "a.hdf5", 0, variable);
    write_demos(folder_ / "b.hdf5", 50000, variable, {"/data/demo_10"});
    const auto source = open_hdf5(folder_, std::string(kDemos) + kMasks);
    EXPECT_EQ(source->splits(), (std::vector<std::string>{"train", "val"}));
    ASSERT_EQ(source->groups(0).size(), 4u);
    EXPECT_EQ(source->groups(0)[1].name, "a:/data/demo_2");
    EXPECT_EQ(source->groups(0)[2].name, "b:/data/demo_0");
    ASSERT_EQ(source->groups(1).size(), 3u);
    EXPECT_EQ(source->groups(1)[2].name, "b:/data/demo_10");
    const Sample last = read_sample(*source, source->length(1) - 1, 0, false, 1);
    EXPECT_EQ(values<double>(last, "actions")[0], 50000.0 + 10000 + 7 * 11);
  }
}

TEST_F(Splits, OfFiles) {
  for (const char* name : {"train_1.hdf5", "train_2.hdf5", "test_1.hdf5", "spare.hdf5"})
    write_demos(folder_ / name, 0, false);
  const auto source = open_hdf5(folder_, std::string(kDemos) +
                                             "splits = [ { name = \"train\", files = [\"train_*\"] }, "
                                             "{ name = \"test\", files = [\"test_1.hdf5\"] } ]");
  EXPECT_EQ(source->groups(0).size(), 8u);
  EXPECT_EQ(source->groups(1).size(), 4u);
}

TEST_F(Splits, ThatCannotBeFollowedAreSentences) {
  write_demos(folder_ / "a.hdf5", 0, false, {"demo_1", "demo_77"});
  EXPECT_EQ(sentence(folder_, std::string(kDemos) + kMasks),
            "[hdf5] split 'val': /mask/valid names 1 groups that groups = \"/data/*\" does not find, first 'demo_77' "
            "of DIR/a.hdf5");
  const std::string twice = R"(splits = [ { name = "train", files = ["*"] }, { name = "val", mask = "/mask/train" } ])";
  EXPECT_EQ(sentence(folder_, kDemos + twice),
            "[hdf5] a:/data/demo_0 is in the splits 'train' and 'val'; a sequence belongs to one");
  const std::string none = R"(splits = [ { name = "train", files = ["b*"] } ])";
  EXPECT_EQ(sentence(folder_, kDemos + none), "[hdf5] split 'train' takes none of the 4 sequences of DIR");
  const std::string numbers = R"(splits = [ { name = "train", mask = "/data/demo_0/actions" } ])";
  EXPECT_EQ(
      sentence(folder_, kDemos + numbers),
      "[hdf5] split 'train': mask: '/data/demo_0/actions' of DIR/a.hdf5 has shape [5, 7]; one axis of integers is "
      "needed");
  const std::string empty = R"(splits = [ { name = "train" } ])";
  EXPECT_EQ(sentence(folder_, kDemos + empty),
            "[hdf5] split 'train' needs one of files (patterns), mask (a dataset of group names, or of a 0 or 1 for "
            "each row) and rows = [from, end]");
}

}  // namespace
}  // namespace headroom
