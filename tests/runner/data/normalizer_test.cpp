// Normaliser: the statistics of all values, whatever the block or the sample, per channel; and what identifies data.

#include "data/normalizer.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../record/temporary_folder.hpp"
#include "data/slots.hpp"
#include "fake_source.hpp"

namespace headroom {
namespace {

Split whole(const Source& source) { return {"train", 0, source.groups(0)}; }

// Two passes over everything, in long double.
FieldStatistics by_hand(const FakeData& data, const std::vector<uint64_t>& samples) {
  FieldStatistics statistics{"x", {}, {}, samples.size()};
  for (int64_t channel = 0; channel < data.channels; ++channel) {
    std::vector<long double> values;
    for (const uint64_t sample : samples) {
      for (int64_t time = 0; time < fake_times; ++time) {
        const double value = data.value ? data.value(sample, time, channel) : fake_value(sample, time, channel);
        values.push_back(data.dtype.bits == 32 ? static_cast<long double>(static_cast<float>(value)) : value);
      }
    }
    long double sum = 0, squares = 0;
    for (const long double value : values) sum += value;
    const long double mean = sum / static_cast<long double>(values.size());
    for (const long double value : values) squares += (value - mean) * (value - mean);
    statistics.mean.push_back(static_cast<double>(mean));
    statistics.std.push_back(static_cast<double>(std::sqrt(squares / static_cast<long double>(values.size()))));
  }
  return statistics;
}

void expect_near(const FieldStatistics& found, const FieldStatistics& expected) {
  EXPECT_EQ(found.field, expected.field);
  EXPECT_EQ(found.samples, expected.samples);
  ASSERT_EQ(found.mean.size(), expected.mean.size());
  for (size_t c = 0; c < found.mean.size(); ++c) {
    EXPECT_NEAR(found.mean[c], expected.mean[c], 1e-12 * std::abs(expected.mean[c]));
    EXPECT_NEAR(found.std[c], expected.std[c], 1e-10 * expected.std[c]);
  }
}

std::vector<uint64_t> first(uint64_t count) {
  std::vector<uint64_t> all(count);
  for (uint64_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

TEST(Normalizer, ExactTakesEverySample) {
  FakeData data;
  const auto source = open_fake(data);
  const Normalizer normalizer = Normalizer::measure(*source, whole(*source), "exact", 1);
  ASSERT_EQ(normalizer.statistics().size(), 1u) << "of fields that ask for it only";
  expect_near(normalizer.statistics()[0], by_hand(data, first(100)));
}

TEST(Normalizer, SampledTakesEvenlySpacedSamplesWithBothEnds) {
  FakeData data;
  const auto source = open_fake(data);
  const Normalizer normalizer = Normalizer::measure(*source, whole(*source), "sampled", 4);
  expect_near(normalizer.statistics()[0], by_hand(data, {0, 33, 66, 99}));
  expect_near(Normalizer::measure(*source, whole(*source), "sampled", 1000).statistics()[0], by_hand(data, first(100)));
  expect_near(Normalizer::measure(*source, whole(*source), "sampled", 1).statistics()[0], by_hand(data, {0}));
}

TEST(Normalizer, OnlyTheTrainingSplitCounts) {
  FakeData data;
  const auto source = open_fake(data);
  const Split part("train", 0, {source->groups(0)[1]});
  std::vector<uint64_t> samples;
  for (uint64_t i = 10; i < 30; ++i) samples.push_back(i);
  expect_near(Normalizer::measure(*source, part, "exact", 0).statistics()[0], by_hand(data, samples));
}

// Large offsets and many blocks: sums of squares in float, or of one pass without care, lose all digits here.
TEST(Normalizer, KeepsItsDigitsFarFromZeroAndAcrossBlocks) {
  FakeData data;
  data.dtype = {kDLFloat, 64, 1};
  data.channels = 4096;  // 128 KiB a sample: blocks of 64
  data.value = [](uint64_t index, int64_t time, int64_t channel) {
    return 1e6 + 1e-3 * std::sin(static_cast<double>(index * 7 + static_cast<uint64_t>(time))) *
                     static_cast<double>(channel + 1);
  };
  const auto source = open_fake(data);
  const Normalizer normalizer = Normalizer::measure(*source, whole(*source), "exact", 0);
  EXPECT_EQ(data.reads, 2);
  const FieldStatistics expected = by_hand(data, first(100));
  for (size_t c = 0; c < 4096; c += 501) {
    EXPECT_NEAR(normalizer.statistics()[0].std[c], expected.std[c], 1e-6 * expected.std[c]);
  }
}

TEST(Normalizer, AConstantChannelKeepsItsScale) {
  FakeData data;
  data.value = [](uint64_t index, int64_t, int64_t channel) { return channel == 1 ? 0.1 : static_cast<double>(index); };
  const auto source = open_fake(data);
  MeasurementNotes notes;
  const Normalizer normalizer = Normalizer::measure(*source, whole(*source), "exact", 0, false, &notes);
  EXPECT_EQ(notes, MeasurementNotes{"field 'x' is constant in 1 of 3 channels, which are centred and not scaled"});
  EXPECT_EQ(normalizer.statistics()[0].std[1], 1.0);
  EXPECT_GT(normalizer.statistics()[0].std[0], 10.0);
}

TEST(Normalizer, OffMeasuresAndChangesNothing) {
  FakeData data;
  const auto source = open_fake(data);
  EXPECT_TRUE(Normalizer::measure(*source, whole(*source), "off", 10).statistics().empty());
  EXPECT_EQ(data.reads, 0);
}

template <class T>
void expect_standard() {
  FakeData data;
  data.dtype = {kDLFloat, static_cast<uint8_t>(8 * sizeof(T)), 1};
  const auto source = open_fake(data);
  const Normalizer normalizer = Normalizer::measure(*source, whole(*source), "exact", 0);
  Slot slot(source->fields(), 100);
  Reader reader = source->reader();
  const auto index = first(100);
  reader.read(0, index, index, false, slot.tensors(0, 100));
  normalizer.apply(source->fields(), slot.tensors(0, 100));
  const auto* x = static_cast<const T*>(slot.tensors(0, 100)[0].data);
  for (int64_t channel = 0; channel < 3; ++channel) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < 400; ++i) sum += x[i * 3 + channel], squares += x[i * 3 + channel] * x[i * 3 + channel];
    EXPECT_NEAR(sum / 400, 0.0, 1e-5);
    EXPECT_NEAR(squares / 400, 1.0, 1e-5);
  }
  EXPECT_EQ(static_cast<const int64_t*>(slot.tensors(0, 100)[1].data)[99], 99) << "other fields stay as they are";
}

TEST(Normalizer, AppliedChannelsHaveMeanZeroAndDeviationOne) {
  expect_standard<float>();
  expect_standard<double>();
}

std::vector<uint64_t> all_but(const std::set<uint64_t>& left_out) {
  std::vector<uint64_t> samples = first(100);
  std::erase_if(samples, [&](uint64_t sample) { return left_out.contains(sample); });
  return samples;
}

TEST(Normalizer, SamplesThatAreNotNumbersAreLeftOutAndSaid) {
  FakeData data;
  data.not_a_number = {42, 77};
  const auto source = open_fake(data);
  MeasurementNotes notes;
  const Normalizer normalizer = Normalizer::measure(*source, whole(*source), "exact", 0, false, &notes);
  expect_near(normalizer.statistics()[0], by_hand(data, all_but({42, 77})));
  EXPECT_EQ(notes, MeasurementNotes{"2 samples were left out of the statistics; the first: field 'x' of sample 42 of "
                                    "split 'train' holds NaN in channel 2"});
}

TEST(Normalizer, WhereNoSampleIsLeftItIsASentence) {
  FakeData data;
  for (uint64_t i = 0; i < 100; ++i) data.not_a_number.insert(i);
  const auto source = open_fake(data);
  EXPECT_EQ(sentence_of([&] { Normalizer::measure(*source, whole(*source), "exact", 0); }),
            "[fake] none of the samples measured of split 'train' has finite values in field 'x'; mend the data, or "
            "set data.normalize = \"off\"");
}

TEST(Normalizer, ABadSampleIsLeftOutWhereBadSamplesAreSkipped) {
  FakeData data;
  data.corrupt = {7};
  const auto source = open_fake(data);
  MeasurementNotes notes;
  EXPECT_THROW(Normalizer::measure(*source, whole(*source), "exact", 0), Error);
  const Normalizer normalizer = Normalizer::measure(*source, whole(*source), "exact", 0, true, &notes);
  expect_near(normalizer.statistics()[0], by_hand(data, all_but({7})));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "1 sample was left out of the statistics; the first: [fake] 'f.h5' has a damaged record 7");
}

TEST(Normalizer, OnlyFloatsCanBeStandardised) {
  FakeData data;
  data.dtype = {kDLUInt, 8, 1};
  const auto source = open_fake(data);
  EXPECT_EQ(sentence_of([&] { Normalizer::measure(*source, whole(*source), "exact", 0); }),
            "[fake] field 'x' asks to be standardised and is uint8; only float32 and float64 can be");
}

TEST(Normalizer, SurvivesACheckpointBitByBit) {
  FakeData data;
  data.value = [](uint64_t index, int64_t time, int64_t channel) {
    return std::sin(static_cast<double>(index) * 0.7 + static_cast<double>(time * channel));
  };
  const auto source = open_fake(data);
  const Normalizer normalizer = Normalizer::measure(*source, whole(*source), "exact", 0);
  const Normalizer again = Normalizer::from_json(nlohmann::json::parse(normalizer.to_json().dump()));
  ASSERT_EQ(again.statistics().size(), 1u);
  EXPECT_EQ(again.statistics()[0].field, "x");
  EXPECT_EQ(again.statistics()[0].mean, normalizer.statistics()[0].mean);
  EXPECT_EQ(again.statistics()[0].std, normalizer.statistics()[0].std);
  EXPECT_EQ(again.statistics()[0].samples, 100u);
  EXPECT_THROW(Normalizer::from_json(nlohmann::json::parse(R"([{"field": "x", "mean": [1]}])")), Error);
  EXPECT_THROW(
      Normalizer::from_json(nlohmann::json::parse(R"([{"field": "x", "mean": [1], "std": [1, 2], "samples": 1}])")),
      Error);
  EXPECT_THROW(Normalizer::from_json(nlohmann::json::parse(R"([3])")), Error);
}

TEST(Normalizer, OtherChannelsThanMeasuredAreAnError) {
  const Normalizer normalizer =
      Normalizer::from_json(nlohmann::json::parse(R"([{"field": "x", "mean": [1, 2], "std": [1, 2], "samples": 1}])"));
  FakeData data;
  const auto source = open_fake(data);
  Slot slot(source->fields(), 1);
  EXPECT_EQ(sentence_of([&] { normalizer.apply(source->fields(), slot.tensors(0, 1)); }),
            "[data] field 'x' has 3 channels; the normaliser was measured on 2");
}

class ContentId : public TemporaryFolder {
 protected:
  std::string id(const std::filesystem::path& root) {
    FakeData data;
    data.channels = channels_;
    for (const char* name : {"b/two.h5", "a/one.h5"}) data.files.push_back((root / name).string());
    return content_id(*open_fake(data));
  }
  std::filesystem::path make(const std::string& name, std::string_view one, std::string_view two) {
    std::filesystem::create_directories(folder_ / name / "a");
    std::filesystem::create_directories(folder_ / name / "b");
    write_text(folder_ / name / "a" / "one.h5", one);
    write_text(folder_ / name / "b" / "two.h5", two);
    return folder_ / name;
  }
  int64_t channels_ = 3;
};

TEST_F(ContentId, IsWhatTheDataIsWhereverItLies) {
  const std::string large(200 << 10, 'x');
  const std::string here = id(make("here", "abc", large));
  EXPECT_EQ(here.size(), 32u);
  EXPECT_EQ(here, id(make("elsewhere/deep", "abc", large)));
  EXPECT_NE(here, id(make("other", "abd", large)));
  EXPECT_NE(here, id(make("swapped", large, "abc")));
  std::string last = large;
  last.back() = 'y';
  EXPECT_NE(here, id(make("last", "abc", last)));
  EXPECT_NE(here, id(make("longer", "abc", large + "x")));
  channels_ = 4;
  EXPECT_NE(here, id(folder_ / "here"));
}

TEST_F(ContentId, ShortFilesOfEveryLengthDiffer) {
  std::set<std::string> ids;
  for (size_t length = 0; length < 20; ++length)
    ids.insert(id(make("n" + std::to_string(length), std::string(length, '\0'), "")));
  EXPECT_EQ(ids.size(), 20u);
}

TEST_F(ContentId, AMissingFileIsASentence) {
  const auto root = make("here", "abc", "def");
  std::filesystem::remove(root / "a" / "one.h5");
  EXPECT_EQ(sentence_of([&] { id(root); }), "[data] cannot read '" + (root / "a" / "one.h5").string() +
                                                "': No such file or directory; check the path and its permissions");
}

}  // namespace
}  // namespace headroom
