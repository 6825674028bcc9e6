// Statistics are measured once for the same data, and never taken from a sidecar that is damaged or of other data.

#include <cstdlib>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

#include "../record/temporary_folder.hpp"
#include "arrays/array_session.hpp"
#include "data/normalizer.hpp"
#include "fake_source.hpp"

namespace headroom {
namespace {

class KeptStatistics : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    if (const char* cache = std::getenv("XDG_CACHE_HOME")) before_ = cache;
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    write_text(folder_ / "data.h5", "some bytes");
    data_.files = {(folder_ / "data.h5").string()};
    source_ = open_fake(data_);
    split_ = {"train", 0, source_->groups(0)};
  }
  void TearDown() override {
    if (before_.empty()) {
      unsetenv("XDG_CACHE_HOME");
    } else {
      setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    }
    TemporaryFolder::TearDown();
  }

  FoundStatistics find(const std::string& mode = "sampled", int64_t samples = 10, const std::string& reads_as = "x") {
    return find_statistics({.source = *source_,
                            .train = split_,
                            .mode = mode,
                            .max_samples = samples,
                            .content_id = content_id(*source_),
                            .reads_as = reads_as});
  }
  std::filesystem::path sidecar() {
    std::filesystem::path found;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "cache/headroom/statistics")) {
      EXPECT_TRUE(found.empty()) << "one file for one request";
      found = file.path();
    }
    return found;
  }
  static std::string text(const Normalizer& normalizer) { return normalizer.to_json().dump(); }

  FakeData data_;
  std::shared_ptr<const Source> source_;
  Split split_;
  std::string before_;
};

TEST_F(KeptStatistics, TheSecondStartReadsNothing) {
  const FoundStatistics first = find();
  EXPECT_FALSE(first.kept);
  ASSERT_EQ(first.lines.size(), 1u);
  EXPECT_TRUE(first.lines[0].starts_with(
      "normalisation: mean and deviation of 10 evenly spaced of 100 training samples, measured in "));
  const int reads = data_.reads;
  const FoundStatistics second = find();
  EXPECT_TRUE(second.kept);
  EXPECT_EQ(data_.reads, reads);
  EXPECT_EQ(text(second.normalizer), text(first.normalizer)) << "to the bit";
  EXPECT_EQ(second.lines, std::vector<std::string>{"normalisation: mean and deviation of 10 evenly spaced of 100 "
                                                   "training samples, measured before on the same files"});
}

TEST_F(KeptStatistics, ANoteIsSaidAgain) {
  data_.not_a_number = {99};
  const FoundStatistics first = find();
  ASSERT_EQ(first.lines.size(), 2u);
  EXPECT_EQ(find().lines[1], first.lines[1]);
}

TEST_F(KeptStatistics, ANoteMayNameAFileWhoseNameIsNotUtf8) {
  // Of the block as a whole, then of its first sample alone.
  int failures = 2;
  data_.during_read = [&] {
    if (failures-- > 0) throw sdk::Error(HR_DATA_CORRUPT, "'/data/h\xE4nde.h5' is damaged");
  };
  const StatisticsRequest request{.source = *source_,
                                  .train = split_,
                                  .mode = "sampled",
                                  .max_samples = 10,
                                  .skip_bad_samples = true,
                                  .content_id = content_id(*source_),
                                  .reads_as = "x"};
  const FoundStatistics first = find_statistics(request);
  ASSERT_EQ(first.lines.size(), 2u);
  EXPECT_NE(first.lines[1].find("'/data/h\xE4nde.h5' is damaged"), std::string::npos) << first.lines[1];
  const FoundStatistics second = find_statistics(request);
  EXPECT_TRUE(second.kept);
  EXPECT_EQ(text(second.normalizer), text(first.normalizer));
  ASSERT_EQ(second.lines.size(), 2u);
  EXPECT_NE(second.lines[1].find("'/data/h\xEF\xBF\xBDnde.h5' is damaged"), std::string::npos) << second.lines[1];
}

TEST_F(KeptStatistics, AnotherRequestIsMeasured) {
  find();
  EXPECT_FALSE(find("sampled", 11).kept);
  EXPECT_FALSE(find("exact").kept);
  EXPECT_TRUE(find("exact", 11).kept) << "exact takes all of them, whatever the number";
  EXPECT_FALSE(find("sampled", 10, "other options").kept);
  split_ = {"train", 0, {source_->groups(0)[1]}};
  EXPECT_FALSE(find().kept);
  EXPECT_TRUE(find().kept);
}

TEST_F(KeptStatistics, AFileThatChangedIsMeasuredAnew) {
  const std::string large(200 << 10, 'x');
  write_text(folder_ / "data.h5", large);
  const std::string id = content_id(*source_);
  find();
  EXPECT_TRUE(find().kept);
  std::string middle = large;
  middle[100 << 10] = 'y';
  std::filesystem::remove(folder_ / "data.h5");
  write_text(folder_ / "data.h5", middle);
  ASSERT_EQ(content_id(*source_), id) << "it looks at both ends";
  EXPECT_FALSE(find().kept);
}

// Behind external links and virtual datasets: the source names the file that leads there.
TEST_F(KeptStatistics, FilesBehindTheSourcesFilesCount) {
  const std::string behind = (folder_ / "behind.h5").string();
  write_text(behind, "first");
  const auto arrays = std::make_shared<ArraySession>();
  source_ = open_fake(data_, true, Session::make(arrays, nullptr));
  const std::string alone = content_id(*source_);
  ArrayPlan plan;
  plan.others = {{behind}};
  arrays->note_opened(plan, "/x");
  const std::string id = content_id(*source_);
  EXPECT_NE(id, alone);
  find();
  EXPECT_TRUE(find().kept);
  write_text(behind, "other");
  EXPECT_NE(content_id(*source_), id);
  EXPECT_FALSE(find().kept);
}

TEST_F(KeptStatistics, ADamagedSidecarIsMeasuredAnewAndMended) {
  const FoundStatistics first = find();
  const std::string whole = read_text(sidecar());
  size_t taken = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = damaged[i] == '1' ? '2' : '1';
    write_text(sidecar(), damaged);
    const FoundStatistics found = find();
    taken += found.kept ? 1 : 0;
    ASSERT_EQ(text(found.normalizer), text(first.normalizer)) << "byte " << i;
  }
  EXPECT_LE(taken, 1u) << "the last line's end alone says nothing";
  for (const std::string& damaged : {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"),
                                     std::string("{\"statistics\": 3}"), std::string(5000, '[')}) {
    write_text(sidecar(), damaged);
    EXPECT_FALSE(find().kept);
    EXPECT_TRUE(find().kept);
  }
}

// Bytes changed, put in and taken out; HEADROOM_FUZZ_MUTATIONS says how often (100).
TEST_F(KeptStatistics, SidecarsOfAnyBytesAreMeasuredAnew) {
  const std::string first = text(find().normalizer), whole = read_text(sidecar());
  const char* told = std::getenv("HEADROOM_FUZZ_MUTATIONS");
  const int mutations = told != nullptr ? std::atoi(told) : 100;
  std::mt19937 random(7);
  int kept = 0;
  for (int i = 0; i < mutations; ++i) {
    std::string damaged = whole;
    for (unsigned change = 0; change <= random() % 8 && !damaged.empty(); ++change) {
      const size_t at = random() % damaged.size(), length = random() % 20;
      if (random() % 3 == 0)
        damaged.erase(at, length);
      else if (random() % 2 == 0)
        damaged.insert(at, damaged.substr(random() % (damaged.size() + 1), length));
      else
        damaged[at] = static_cast<char>(random());
    }
    write_text(sidecar(), damaged);
    const FoundStatistics found = find();
    kept += found.kept ? 1 : 0;
    ASSERT_EQ(text(found.normalizer), first) << "mutation " << i;
  }
  EXPECT_LT(kept, mutations / 10) << "only what changed nothing is taken";
}

// Well-formed, with its check right, and yet not of these fields.
TEST_F(KeptStatistics, StatisticsOfOtherFieldsAreNotTaken) {
  find();
  const std::string three = read_text(sidecar());
  const auto place = sidecar();
  std::filesystem::remove(place);
  data_.channels = 2;
  source_ = open_fake(data_);
  find();
  write_text(sidecar(), three);
  EXPECT_FALSE(find().kept);
}

TEST_F(KeptStatistics, WhatNamesNoFilesIsNotKept) {
  data_.files.clear();
  EXPECT_FALSE(find().kept);
  EXPECT_FALSE(find().kept);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cache"));
}

TEST_F(KeptStatistics, APlaceThatCannotBeWrittenIsNobodysProblem) {
  write_text(folder_ / "file", "");
  setenv("XDG_CACHE_HOME", (folder_ / "file").c_str(), 1);
  EXPECT_FALSE(find().kept);
  EXPECT_FALSE(find().kept);
}

TEST_F(KeptStatistics, OffSaysNothing) { EXPECT_TRUE(find("off").lines.empty()); }

}  // namespace
}  // namespace headroom
