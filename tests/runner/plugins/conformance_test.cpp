#include "plugins/conformance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom {
namespace {

using Outcome = CheckResult::Outcome;

// The checks of a plugin that ended so.
std::vector<std::string> checks(const std::string& path, Outcome outcome) {
  std::vector<std::string> found;
  for (const CheckResult& check : check_plugin(path)) {
    if (check.outcome == outcome) found.push_back(check.name + (check.sentence.empty() ? "" : ": " + check.sentence));
  }
  return found;
}

std::vector<std::string> failures(const std::string& plugin) {
  return checks(HEADROOM_TEST_PLUGIN_DIR "/" + plugin + ".so", Outcome::fail);
}

TEST(Conformance, GoodPluginsPass) {
  EXPECT_THAT(checks(HEADROOM_EXAMPLE_DIR "/toy_source.so", Outcome::fail), testing::IsEmpty());
  EXPECT_EQ(checks(HEADROOM_EXAMPLE_DIR "/toy_source.so", Outcome::ok).size(), 14u);
  EXPECT_THAT(failures("c_source_1_0"), testing::IsEmpty());
  EXPECT_THAT(failures("every_type"), testing::IsEmpty());
}

TEST(Conformance, FindsWhatHurtsLater) {
  EXPECT_THAT(
      failures("careless"),
      testing::ElementsAre("headroom.datasource/1: options are well-formed: [plugin] data.options.shy has no "
                           "help: one line with its meaning and unit",
                           "datasource: a sample is the same alone and among others: [plugin] field 'x' of "
                           "sample 3 changes with its batch: a read "
                           "must be a pure function of content, index and key",
                           "datasource: keys change nothing where it says so: [plugin] field 'x' of sample 0 "
                           "changes with its key, and the source says HR_SOURCE_NO_AUGMENT: the host would keep "
                           "one of its versions"));
}

TEST(Conformance, FindsTheMissingNoteAndBrokenInit) {
  EXPECT_THAT(failures("hostile_no_note"),
              testing::Contains(testing::StartsWith("carries an ELF note: [plugin] it has none")));
  EXPECT_THAT(
      failures("hostile_note_differs"),
      testing::Contains("note and header say the same: [plugin] the note says id 'hostile', the header 'another'"));
  EXPECT_THAT(failures("hostile_init_fails"),
              testing::Contains("loads: [hostile] this processor lacks AVX-512, which the plugin needs"));
  EXPECT_THAT(failures("hostile_slot_null"),
              testing::Contains(testing::HasSubstr("has no read: this function is required")));
}

TEST(Conformance, NotALibrary) {
  const auto results = check_plugin(HEADROOM_SOURCE_DIR "/CMakeLists.txt");
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].outcome, Outcome::fail);
  EXPECT_THAT(results[0].sentence,
              testing::EndsWith("is not a shared library: it does not begin with a whole ELF header"));
}

}  // namespace
}  // namespace headroom
