#include "plugins/conformance.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "headroom/datasource.hpp"
#include "plugins/read_checks.hpp"

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
  EXPECT_EQ(checks(HEADROOM_EXAMPLE_DIR "/toy_source.so", Outcome::ok).size(), 15u);
  EXPECT_THAT(failures("c_source_1_0"), testing::IsEmpty());
  EXPECT_THAT(failures("every_type"), testing::IsEmpty());
}

TEST(Conformance, FindsWhatHurtsLater) {
  EXPECT_THAT(
      failures("careless"),
      testing::ElementsAre("headroom.datasource/1: options are well-formed: [plugin] data.options.shy has no "
                           "help: one line with its meaning and unit",
                           "datasource: fills its slots and nothing beside them: [plugin] field 'y' of sample 3 is "
                           "not written whole, so a model would see what the slot held before: a read writes every "
                           "element, and what it does not draw from the key is the same each time",
                           "datasource: a sample is the same alone and among others: [plugin] field 'x' of "
                           "sample 3 changes with its batch: a read "
                           "must be a pure function of content, index and key",
                           "datasource: keys change nothing where it says so: [plugin] field 'x' of sample 0 "
                           "changes with its key, and the source says HR_SOURCE_NO_AUGMENT: the host would keep "
                           "one of its versions"));
}

struct WritesBehind {
  explicit WritesBehind(const sdk::Options&) {}
  std::vector<sdk::Field> fields() const { return {{.name = "x", .shape = {2}}}; }
  uint64_t length() const { return 4; }
  void read(const sdk::ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i) {
      const auto slot = request.slot<float>(0, i);
      std::fill_n(slot.data(), slot.size() + 1, 1.0f);
    }
  }
};

TEST(Conformance, FindsWritesBehindASlot) {
  const auto* table = static_cast<const hr_datasource*>(sdk::datasource<WritesBehind>().find(HR_DATASOURCE));
  const auto source = Source::open(*table, "behind", nullptr);
  EXPECT_THAT([&] { require_filled_slots(*source); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("writes behind the slot of field 'x'")));
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
