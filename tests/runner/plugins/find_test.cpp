#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "plugins/library.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class FindPlugin : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("headroom_find_" + std::to_string(getpid()));
    fs::create_directories(root_ / "first");
    fs::create_directories(root_ / "second");
    unsetenv("HEADROOM_PLUGIN_PATH");
  }
  void TearDown() override {
    fs::remove_all(root_);
    unsetenv("HEADROOM_PLUGIN_PATH");
  }
  void copy(const std::string& plugin, const fs::path& to) {
    fs::copy_file(fs::path(HEADROOM_TEST_PLUGIN_DIR) / plugin, root_ / to);
  }

  fs::path root_;
};

TEST_F(FindPlugin, FoldersInOrder) {
  setenv("HEADROOM_PLUGIN_PATH", "/a::/b", 1);
  const std::vector<fs::path> given = {"/mine"};
  const auto folders = plugin_folders(given);
  ASSERT_EQ(folders.size(), 4u);
  EXPECT_EQ(folders[0], "/mine");
  EXPECT_EQ(folders[1], "/a");
  EXPECT_EQ(folders[2], "/b");
  EXPECT_EQ(folders[3], fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib" / "headroom");
}

TEST_F(FindPlugin, ByIdWhateverTheFileIsCalled) {
  copy("every_type.so", "second/renamed.so");
  std::ofstream(root_ / "first" / "broken.so") << "not a library";
  const std::vector<fs::path> folders = {root_ / "first", root_ / "second", "/no/such/folder"};
  EXPECT_EQ(find_plugin("every_type", folders), root_ / "second" / "renamed.so");
  copy("every_type.so", "first/every_type.so");
  EXPECT_EQ(find_plugin("every_type", folders), root_ / "first" / "every_type.so");
}

TEST_F(FindPlugin, ListsEachFileOnce) {
  copy("every_type.so", "first/every_type.so");
  fs::create_symlink(root_ / "first" / "every_type.so", root_ / "second" / "every_type.so");
  std::ofstream(root_ / "first" / "notes.txt") << "not a library";
  const std::vector<fs::path> folders = {root_ / "first", root_ / "second"};
  const auto found = list_plugins(folders);
  EXPECT_EQ(std::ranges::count(found, root_ / "first" / "every_type.so"), 1);
  EXPECT_EQ(std::ranges::count(found, root_ / "second" / "every_type.so"), 0);
}

TEST_F(FindPlugin, SaysWhereItLookedAndWhatIsThere) {
  copy("every_type.so", "first/every_type.so");
  const std::vector<fs::path> folders = {root_ / "first"};
  EXPECT_THAT([&] { find_plugin("evry_type", folders); },
              ThrowsMessage<Error>(AllOf(HasSubstr("[plugin] no plugin 'evry_type' in " + (root_ / "first").string()),
                                         HasSubstr("there are: every_type"), HasSubstr("HEADROOM_PLUGIN_PATH"))));
  EXPECT_THAT(
      [&] { find_plugin("./none.so", folders); },
      ThrowsMessage<Error>("[plugin] ./none.so is not there: give the path of a shared library, or a plugin's id"));
}

}  // namespace
}  // namespace headroom
