// Experiments that come with the program: found by name, beside the program under test as beside an installed one.
#include "config/own_experiments.hpp"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/document.hpp"
#include "config/sentences.hpp"
#include "files.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

class OwnExperiments : public testing::Test {
 protected:
  OwnExperiments() { fs::current_path(folder_.path()); }
  ~OwnExperiments() override { fs::current_path(before_); }

  const TemporaryFolder folder_;
  const fs::path before_ = fs::current_path();
};

TEST_F(OwnExperiments, AreFoundByName) {
  const Experiment e = load_experiment("quick_demo");
  EXPECT_EQ(e.experiment.name, "quick_demo");
  EXPECT_EQ(e.file, fs::canonical(HEADROOM_BUILD_DIR) / "share/headroom/experiments/quick_demo.toml");
  EXPECT_EQ(load_experiment("emg/low_memory").experiment.name, "emg_low_memory");
}

// Nothing is written beside the program, which may be read-only and is replaced by its next version.
TEST_F(OwnExperiments, HaveTheirPathsInTheWorkingFolder) {
  EXPECT_EQ(resolved_path(*load_experiment("quick_demo").data_options.get("path")), folder_.path() / "data/quick_demo");
  EXPECT_EQ(resolved_path(*load_experiment("emg/low_memory").data_options.get("path")), folder_.path() / "data/emg");
  // The same file by another path is a file as any other.
  EXPECT_EQ(
      resolved_path(*load_experiment(HEADROOM_SOURCE_DIR "/experiments/quick_demo.toml").data_options.get("path")),
      fs::path(HEADROOM_SOURCE_DIR) / "data/quick_demo");
}

TEST_F(OwnExperiments, CanBeExtendedByName) {
  folder_.write("my.toml", "extends = \"emg/low_memory\"\n[experiment]\nname = \"mine\"\n");
  const Experiment e = load_experiment("my.toml");
  EXPECT_EQ(e.experiment.name, "mine");
  EXPECT_EQ(e.train.batch_size, 16);
  EXPECT_EQ(resolved_path(*e.data_options.get("path")), folder_.path() / "data/emg");
}

TEST_F(OwnExperiments, AFileOfThatNameIsMeantAndAFolderIsNot) {
  fs::create_directory(folder_.path() / "quick_demo");
  EXPECT_EQ(load_experiment("quick_demo").experiment.name, "quick_demo");
  fs::remove(folder_.path() / "quick_demo");
  folder_.write("quick_demo", required_keys);
  EXPECT_EQ(load_experiment("quick_demo").experiment.name, "x");
}

TEST_F(OwnExperiments, AreListedWhereANameIsNotFound) {
  const std::string sentence = refusal([] { load_experiment("quick_demon"); });
  EXPECT_THAT(sentence, testing::StartsWith("[config] quick_demon does not exist; give the path of an experiment file "
                                            "(TOML), or the name of one that comes with Headroom: hdf5_example, "
                                            "quick_demo, act_dual_arm/"));
  EXPECT_THAT(sentence, testing::HasSubstr(" sweeps/batch_x_accumulation"));
  folder_.write("my.toml", "extends = \"emg/low_memori\"\n");
  EXPECT_THAT(refusal([] { load_experiment("my.toml"); }), testing::HasSubstr("emg/low_memory"));
  // Whoever writes a path does not look for a name.
  EXPECT_EQ(refusal([] { load_experiment("quick_demon.toml"); }),
            "[config] quick_demon.toml does not exist; give the path of an experiment file (TOML)");
}

TEST_F(OwnExperiments, NamesDoNotLeadOutOfTheirFolder) {
  const fs::path own = fs::canonical(HEADROOM_BUILD_DIR) / "share/headroom/experiments";
  const fs::path outside = fs::path(HEADROOM_SOURCE_DIR "/experiments/quick_demo").lexically_relative(own);
  EXPECT_THAT(refusal([&] { load_experiment(outside); }), testing::HasSubstr("quick_demo does not exist; "));
}

}  // namespace

}  // namespace headroom
