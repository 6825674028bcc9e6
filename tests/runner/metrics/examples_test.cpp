#include "metrics/examples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../record/temporary_folder.hpp"
#include "record/run_folder.hpp"
#include "report/examples.hpp"

namespace headroom {
namespace {

using Json = nlohmann::json;
using testing::StartsWith;

class ExamplesTest : public TemporaryFolder {
 protected:
  Examples examples(bool masked = false, uint64_t length = 30) const {
    const std::vector<OutputInfo> outputs = {{"pose", "rad"}, {"truth", "", HR_TARGET}, {"valid", "", HR_MASK}};
    const auto used = std::span(outputs).first(masked ? 3 : 2);
    std::vector<Field> fields(2);
    fields[0].name = "blur", fields[1].name = "sharp";
    return {folder_, pair_outputs("net", used, {}), {used.begin(), used.end()}, fields, length};
  }
  Json file() const { return read_json_file(folder_ / examples_file); }
  Json output() const { return file().at("last").at("samples").at(0).at("outputs").at(0); }
};

TEST_F(ExamplesTest, AreSpreadOverTheSplit) {
  const Examples three = examples();
  EXPECT_TRUE(three.wants(5, 1));
  EXPECT_TRUE(three.wants(14, 2));
  EXPECT_TRUE(three.wants(0, 30));
  EXPECT_FALSE(three.wants(6, 9));
  EXPECT_FALSE(three.wants(26, 100));
  const Examples one = examples(false, 1);
  EXPECT_TRUE(one.wants(0, 1));
}

TEST_F(ExamplesTest, SeriesAreThinnedAndMasked) {
  Examples shown = examples(/*masked=*/true);
  const at::Tensor prediction = at::arange(2 * 500 * 6, at::kDouble).reshape({2, 500, 6});
  at::Tensor mask = at::ones({2, 500}, at::kBool);
  mask.index_put_({1, 3}, false);
  shown.take(4, {}, std::vector<at::Tensor>{prediction, prediction + 0.5, mask});
  shown.write(10, 1);
  const Json series = output();
  EXPECT_EQ(file().at("last").at("samples").at(0).at("sample"), 5) << "the second of the batch";
  EXPECT_EQ(series.at("kind"), "series");
  EXPECT_EQ(series.at("unit"), "rad");
  EXPECT_EQ(series.at("stride"), 3);
  ASSERT_EQ(series.at("channels").size(), 4u);
  const Json& channel = series.at("channels").at(1);
  EXPECT_EQ(channel.at("channel"), 1);
  EXPECT_EQ(channel.at("prediction").size(), 167u);
  EXPECT_EQ(channel.at("prediction").at(1), 3000 + 3 * 6 + 1);
  EXPECT_TRUE(channel.at("target").at(1).is_null()) << "masked";
  EXPECT_EQ(channel.at("target").at(2), 3000 + 6 * 6 + 1.5);
}

TEST_F(ExamplesTest, PicturesAreFoundByTheirShape) {
  const std::vector<std::vector<int64_t>> pictures = {{3, 40, 32}, {40, 32, 3}, {1, 16, 16}, {5, 3, 40, 500}};
  for (const auto& shape : pictures) {
    Examples shown = examples();
    std::vector<int64_t> batch = {1};
    batch.insert(batch.end(), shape.begin(), shape.end());
    const at::Tensor target = at::rand(batch);
    shown.take(5, std::vector<at::Tensor>{target * 0.5, target}, std::vector<at::Tensor>{target * 0.9, target});
    shown.write(10, 1);
    const Json picture = output();
    EXPECT_EQ(picture.at("kind"), "picture") << target.sizes();
    EXPECT_THAT(picture.at("prediction").get<std::string>(), StartsWith("data:image/png;base64,"));
    EXPECT_NE(picture.at("prediction"), picture.at("target"));
    ASSERT_EQ(picture.at("inputs").size(), 1u) << "the target itself is none of them";
    EXPECT_EQ(picture.at("inputs").at(0).at("name"), "blur");
  }
  Examples none = examples();
  none.take(5, {}, std::vector<at::Tensor>{at::rand({1, 4}), at::rand({1, 4})});
  std::filesystem::remove(folder_ / examples_file);
  none.write(10, 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / examples_file)) << "there is nothing to draw";
}

// Of a process that leaves the file to another: the next evaluation may give it other samples.
TEST_F(ExamplesTest, WhatIsForgottenIsNeitherGivenNorWritten) {
  const at::Tensor values = at::ones({1, 10, 1});
  Examples shown = examples();
  for (const uint64_t sample : {5, 15}) shown.take(sample, {}, std::vector<at::Tensor>{values, values});
  EXPECT_EQ(shown.taken().size(), 2u);
  shown.forget_taken();
  EXPECT_TRUE(shown.taken().empty());
  shown.take(15, {}, std::vector<at::Tensor>{values, values});
  shown.write(10, 1);
  ASSERT_EQ(file().at("last").at("samples").size(), 1u);
  EXPECT_EQ(file().at("last").at("samples").at(0).at("sample"), 15);
}

TEST_F(ExamplesTest, TheFirstEvaluationIsKeptThroughAResume) {
  const at::Tensor values = at::ones({1, 10, 1});
  for (const int epoch : {1, 2, 3}) {
    Examples resumed = examples();
    resumed.take(5, {}, std::vector<at::Tensor>{values * epoch, values});
    resumed.write(10 * epoch, epoch);
  }
  EXPECT_EQ(file().at("first").at("epoch"), 1);
  EXPECT_EQ(file().at("last").at("epoch"), 3);
  EXPECT_EQ(output().at("channels").at(0).at("prediction").at(9), 3);
}

}  // namespace
}  // namespace headroom
