// Accuracy, precision, recall and F1 of matrices that can be checked by hand.
#include <cmath>
#include <gtest/gtest.h>

#include "metrics/confusion.hpp"

namespace headroom {
namespace {

using Json = nlohmann::json;

// 10 cats, 5 dogs, no bird; a bird is predicted twice.
const std::vector<int64_t> kAnimals = {7, 2, 1,  //
                                       1, 3, 1,  //
                                       0, 0, 0};

TEST(ClassMetrics, AreThoseOfTheTextbook) {
  const ClassMetrics metrics = class_metrics(kAnimals, 3);
  EXPECT_EQ(metrics.count, 15);
  EXPECT_DOUBLE_EQ(metrics.accuracy, 10.0 / 15.0);
  EXPECT_EQ(metrics.support, (std::vector<int64_t>{10, 5, 0}));
  EXPECT_EQ(metrics.predicted, (std::vector<int64_t>{8, 5, 2}));
  EXPECT_DOUBLE_EQ(metrics.precision[0], 7.0 / 8.0);
  EXPECT_DOUBLE_EQ(metrics.recall[0], 0.7);
  EXPECT_DOUBLE_EQ(metrics.f1[0], 14.0 / 18.0);
  EXPECT_EQ(metrics.precision[2], 0.0);
  EXPECT_TRUE(std::isnan(metrics.recall[2])) << "no bird was there to be found";
  EXPECT_EQ(metrics.f1[2], 0.0) << "it was predicted, so it counts";
  EXPECT_DOUBLE_EQ(metrics.macro_f1, (14.0 / 18.0 + 0.6 + 0.0) / 3.0);
}

TEST(ClassMetrics, AClassThatNeitherOccursNorIsPredictedHasNone) {
  const std::vector<int64_t> matrix = {3, 1, 0, 0, 2, 0, 0, 0, 0};
  const ClassMetrics metrics = class_metrics(matrix, 3);
  EXPECT_TRUE(std::isnan(metrics.f1[2]));
  EXPECT_DOUBLE_EQ(metrics.macro_f1, (6.0 / 7.0 + 4.0 / 5.0) / 2.0);
  const Json json = class_metrics_json(matrix, 3, {});
  EXPECT_TRUE(json.at("f1").at(2).is_null());
  EXPECT_FALSE(json.contains("names"));
}

TEST(ClassMetrics, NameTheMostFrequentMistakesFirst) {
  const Json json = class_metrics_json(kAnimals, 3, {"cat", "dog", "bird"});
  EXPECT_EQ(json.at("matrix"), Json::parse("[[7, 2, 1], [1, 3, 1], [0, 0, 0]]"));
  EXPECT_EQ(json.at("names"), Json::parse(R"(["cat", "dog", "bird"])"));
  EXPECT_EQ(json.at("confused"), Json::parse(R"([{"true": 0, "predicted": 1, "count": 2, "share": 0.2},
                                                 {"true": 0, "predicted": 2, "count": 1, "share": 0.1},
                                                 {"true": 1, "predicted": 0, "count": 1, "share": 0.2},
                                                 {"true": 1, "predicted": 2, "count": 1, "share": 0.2}])"));
}

TEST(ClassMetrics, OfManyClassesTheMatrixIsLeftOutAndTheMistakesAreNot) {
  const int64_t classes = most_classes_listed + 1;
  std::vector<int64_t> matrix(static_cast<size_t>(classes * classes), 0);
  for (int64_t i = 0; i < 20; ++i) matrix[static_cast<size_t>(i * classes + i + 1)] = i + 1;
  const Json json = class_metrics_json(matrix, classes, {});
  EXPECT_FALSE(json.contains("matrix"));
  ASSERT_EQ(json.at("confused").size(), 10u);
  EXPECT_EQ(json.at("confused").at(0).at("true"), 19);
  EXPECT_EQ(json.at("confused").at(9).at("count"), 11);
  EXPECT_TRUE(class_metrics_json(std::vector<int64_t>(256 * 256, 1), 256, {}).contains("matrix"));
}

}  // namespace
}  // namespace headroom
