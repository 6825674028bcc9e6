#include "hdf5/glob.hpp"

#include "../../runner/plugins/process_host.hpp"
#include "hdf5_source.hpp"

namespace headroom {
namespace {

using hdf5_source::matches;
using Glob = Hdf5Folder;

TEST(Names, MatchPatterns) {
  EXPECT_TRUE(matches("*.hdf5", "a.hdf5"));
  EXPECT_TRUE(matches("*.hdf5", ".hdf5"));
  EXPECT_FALSE(matches("*.hdf5", "a.hdf5.partial"));
  EXPECT_TRUE(matches("demo_?", "demo_7"));
  EXPECT_FALSE(matches("demo_?", "demo_17"));
  EXPECT_TRUE(matches("*a*b*", "xxaxxaxxb"));
  EXPECT_FALSE(matches("*a*b", "xxaxxaxxbc"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("**", "a"));
}

TEST_F(Glob, FindsFilesAtAnyDepth) {
  hdf5_plugin();
  const sdk::Host services(host());
  for (const char* name : {"a.h5", "b.h5", "c.txt", "s/d.h5", "s/t/e.h5"}) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << "";
  }
  const auto found = [&](const std::vector<std::string>& patterns) {
    std::vector<std::string> names;
    for (const auto& file : hdf5_source::find_files(services, folder_, patterns))
      names.push_back(file.lexically_relative(folder_).string());
    return names;
  };
  EXPECT_THAT(found({"*.h5"}), testing::ElementsAre("a.h5", "b.h5"));
  EXPECT_THAT(found({"**/*.h5"}), testing::UnorderedElementsAre("a.h5", "b.h5", "s/d.h5", "s/t/e.h5"));
  EXPECT_THAT(found({"s/*.h5", "s/d.h5"}), testing::ElementsAre("s/d.h5"));
  EXPECT_THAT(found({"*/t/**"}), testing::ElementsAre("s/t/e.h5"));
  EXPECT_THAT(found({"./a.h5"}), testing::ElementsAre("a.h5"));
  EXPECT_THAT(found({"s"}), testing::ElementsAre());
  for (const auto& [pattern, file] : {std::pair("**/*.h5", "s/t/e.h5"), std::pair("s/**", "s/d.h5")})
    EXPECT_TRUE(hdf5_source::matches_below(folder_, pattern, folder_ / file)) << pattern;
  EXPECT_FALSE(hdf5_source::matches_below(folder_, "*.h5", folder_ / "s/d.h5"));
}

TEST_F(Glob, FindsGroupsOfAFile) {
  hdf5_plugin();
  {
    const Hdf5Lock lock;
    const Handle file = create_file(folder_ / "a.h5");
    for (const char* name : {"data/demo_0/obs/x", "data/demo_10/obs/x", "data/demo_2/obs/x", "data/notes"})
      write_dataset(file.get(), name, H5T_STD_U8LE, {1}, std::vector<uint8_t>{1});
  }
  const sdk::Host services(host());
  const auto found = [&](const char* pattern) { return hdf5_source::find_groups(services, folder_ / "a.h5", pattern); };
  EXPECT_THAT(found("/"), testing::ElementsAre("/"));
  EXPECT_THAT(found("/data/*"), testing::ElementsAre("/data/demo_0", "/data/demo_10", "/data/demo_2"));
  EXPECT_THAT(found("data/demo_?/obs"), testing::ElementsAre("/data/demo_0/obs", "/data/demo_2/obs"));
  EXPECT_THAT(found("**/obs"), testing::ElementsAre("/data/demo_0/obs", "/data/demo_10/obs", "/data/demo_2/obs"));
  EXPECT_THAT(found("/data/notes"), testing::ElementsAre());
}

}  // namespace
}  // namespace headroom
