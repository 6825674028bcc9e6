// An experiment written as TOML.
#include <gtest/gtest.h>

#include "every_key.hpp"

namespace headroom {

namespace {

std::string written(const Experiment& experiment) {
  return experiment_to_toml(experiment, experiment.model_options, experiment.data_options, experiment.data_synth);
}

TEST(Write, ReadsBackEqual) {
  for (const std::string& text : {required_keys, everything}) {
    const Experiment first = loaded(text);
    const Experiment second = loaded(written(first));
    EXPECT_EQ(values_of(first), values_of(second));
    EXPECT_EQ(inert_keys_of(first), inert_keys_of(second));
    EXPECT_EQ(first.model_options, second.model_options);
    EXPECT_EQ(first.data_options, second.data_options);
    EXPECT_EQ(written(first), written(second));
  }
}

TEST(Write, EveryKeyIsWritten) {
  const std::string text = written(loaded(everything));
  for (const Key& key : known_keys()) {
    const std::string name(key.name());
    const bool found =
        text.find(name + " = ") != std::string::npos || text.find("[" + key.path + "]") != std::string::npos;
    EXPECT_TRUE(found) << key.path;
  }
}

TEST(Write, KeysStandInTheOrderOfTheirTable) {
  const std::string text = written(loaded(everything));
  const char* order[] = {"[experiment]", "[model]",  "[model.options]", "[data]",       "[data.options]",
                         "[data.synth]", "[train]",  "[eval]",          "[checkpoint]", "[metrics]",
                         "[memory]",     "[record]", "[init]",          "[rescue]",     "[sweep]"};
  size_t last = 0;
  for (const char* header : order) {
    const size_t at = text.find(std::string("\n") + header + "\n");
    ASSERT_NE(at, std::string::npos) << header;
    EXPECT_GT(at, last) << header;
    last = at;
  }
}

TEST(Write, PathsAreAbsoluteSoThatTheFileCanMove) {
  const TemporaryFolder folder;
  const auto file = folder.write("x.toml", required_keys + "init.from = \"weights\"\n");
  const Experiment moved = loaded(written(load_experiment(file)));
  EXPECT_EQ(moved.init.from, folder.path() / "weights");
}

}  // namespace

}  // namespace headroom
