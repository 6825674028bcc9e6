#include "plugins/conformance.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

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
  EXPECT_EQ(checks(HEADROOM_EXAMPLE_DIR "/toy_source.so", Outcome::ok).size(), 18u);
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
                           "datasource: keys change nothing where it says so: [plugin] field 'x' of sample 3 "
                           "changes with its key, and the source says HR_SOURCE_NO_AUGMENT: the host would keep "
                           "one of its versions"));
}

template <class T>
std::shared_ptr<const Source> open_source() {
  return Source::open(*static_cast<const hr_datasource*>(sdk::datasource<T>().find(HR_DATASOURCE)), "here", nullptr);
}

struct FourSamples {
  explicit FourSamples(const sdk::Options&) {}
  std::vector<sdk::Field> fields() const { return {{.name = "x", .shape = {2}}}; }
  uint64_t length() const { return 4; }
};

struct WritesBehind : FourSamples {
  using FourSamples::FourSamples;
  void read(const sdk::ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i) {
      const auto slot = request.slot<float>(0, i);
      std::fill_n(slot.data(), slot.size() + 1, 1.0f);
    }
  }
};

struct WritesBefore : FourSamples {
  using FourSamples::FourSamples;
  void read(const sdk::ReadRequest& request) const {
    for (uint64_t i = request.count(); i-- > 0;) {
      const auto slot = request.slot<float>(0, i);
      std::fill_n(slot.data() - 1, slot.size() + 1, 1.0f);
    }
  }
};

TEST(Conformance, FindsWritesBesideASlot) {
  const auto says = testing::ThrowsMessage<Error>(testing::HasSubstr("writes beside the slot of field 'x'"));
  EXPECT_THAT([] { require_filled_slots(*open_source<WritesBehind>()); }, says);
  EXPECT_THAT([] { require_filled_slots(*open_source<WritesBefore>()); }, says);
}

struct FillsOneSplit {
  explicit FillsOneSplit(const sdk::Options&) {}
  std::vector<sdk::Field> fields() const { return {{.name = "x", .shape = {2}}}; }
  std::vector<std::string> splits() const { return {"train", "val"}; }
  uint64_t length(uint32_t) const { return 4; }
  void read(const sdk::ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count() && request.split() == 0; ++i)
      std::ranges::fill(request.slot<float>(0, i), 1.0f);
  }
};

TEST(Conformance, LooksAtEverySplit) {
  EXPECT_THAT([] { require_filled_slots(*open_source<FillsOneSplit>()); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("field 'x' of sample 3 of split 'val' is not written")));
}

struct StopsShort : FourSamples {
  using FourSamples::FourSamples;
  uint64_t length() const { return 1000; }
  void read(const sdk::ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i) {
      if (request.index(i) == 999) throw sdk::Error(HR_INTERNAL, "beyond the end");
      std::ranges::fill(request.slot<float>(0, i), 1.0f);
    }
  }
};

TEST(Conformance, ReadsTheLastSample) {
  EXPECT_THAT([] { require_filled_slots(*open_source<StopsShort>()); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("beyond the end")));
}

struct DrawsAlways : FourSamples {
  using FourSamples::FourSamples;
  void read(const sdk::ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i)
      std::ranges::fill(request.slot<float>(0, i), static_cast<float>(request.key(i)));
  }
};

TEST(Conformance, FindsDrawsWhereNothingIsToBeDrawn) {
  require_pure_reads(*open_source<DrawsAlways>());
  EXPECT_THAT([] { require_plain_reads(*open_source<DrawsAlways>()); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("where it is not to be augmented")));
}

struct SharesABuffer : FourSamples {
  using FourSamples::FourSamples;
  mutable std::atomic<uint64_t> index{0};
  void read(const sdk::ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i) {
      index = request.index(i);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::ranges::fill(request.slot<float>(0, i), static_cast<float>(index));
    }
  }
};

TEST(Conformance, FindsABufferThatThreadsShare) {
  require_pure_reads(*open_source<SharesABuffer>());
  EXPECT_THAT([] { require_reads_on_threads(*open_source<SharesABuffer>()); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("changes while other threads read")));
}

struct MindsTheOthers {
  explicit MindsTheOthers(const sdk::Options&) {}
  std::vector<sdk::Field> fields() const { return {{.name = "x", .shape = {2}, .normalize = true}, {.name = "y"}}; }
  uint64_t length() const { return 4; }
  void read(const sdk::ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i) {
      std::ranges::fill(request.slot<float>(0, i), request.wanted(1) ? 1.0f : 2.0f);
      std::ranges::fill(request.slot<float>(1, i), 3.0f);
    }
  }
};

TEST(Conformance, FindsAFieldThatMindsWhetherOthersAreWanted) {
  require_filled_slots(*open_source<MindsTheOthers>());
  EXPECT_THAT([] { require_reads_of_single_fields(*open_source<MindsTheOthers>()); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("field 'x' changes when others are not wanted")));
}

struct Damaged : FourSamples {
  using FourSamples::FourSamples;
  void read(const sdk::ReadRequest&) const { throw sdk::Error(HR_DATA_CORRUPT, "sample 3 is damaged"); }
};

TEST(Conformance, DamagedDataIsNoMistakeOfThePlugin) {
  CheckList list;
  const auto source = open_source<Damaged>();
  check_reads(list, [&]() -> const Source& { return *source; });
  for (const CheckResult& check : list.take()) EXPECT_EQ(check.outcome, Outcome::skip) << check.sentence;
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

TEST(Conformance, FindsRegistrationsOfEveryKind) {
  EXPECT_THAT(failures("hostile_registers"),
              testing::Contains(testing::StartsWith("registers no operators (TORCH_LIBRARY): [plugin] it registers "
                                                    "operators or classes with RegisterOperators")));
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
