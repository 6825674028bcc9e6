// The host's metrics of class scores: exact counts, however the samples are divided.
#include "metrics/confusion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "metrics/metrics.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Json = nlohmann::json;

constexpr int64_t kClasses = 3;

std::vector<OutputInfo> class_outputs(bool masked) {
  std::vector<OutputInfo> outputs = {{"scores", "", HR_PREDICTION, ClassInfo{kClasses, "label", {}, false}},
                                     {"label", "", HR_TARGET}};
  if (masked) outputs.push_back({"valid", "", HR_MASK});
  return outputs;
}

OutputMetrics class_sums(bool masked, OutputMetrics::Keep keep = OutputMetrics::Keep::sums) {
  return OutputMetrics(pair_outputs("net", class_outputs(masked), {}), keep);
}

// Scores whose highest is at `predicted`.
at::Tensor scores_for(const at::Tensor& predicted) {
  return at::one_hot(predicted, kClasses).to(at::kFloat) + 0.25 * at::rand(1).item<float>();
}

Json matrix_of_val(const OutputMetrics& metrics) {
  return metrics.measured("val").classes.at("val/scores").at("matrix");
}

double value_of(const Measured& measured, const std::string& name) {
  for (const auto& [key, value] : measured.values) {
    if (key == name) return value;
  }
  return -1.0;
}

const at::Tensor kTrue = at::tensor({0, 0, 0, 1, 1, 2, 2, 2}, at::kLong);
const at::Tensor kPredicted = at::tensor({0, 0, 1, 1, 2, 2, 2, 0}, at::kLong);

TEST(ClassSums, AnySplitGivesTheSameMatrix) {
  for (const std::vector<int64_t>& lengths :
       std::vector<std::vector<int64_t>>{{8}, {1, 7}, {3, 3, 2}, std::vector<int64_t>(8, 1)}) {
    OutputMetrics epoch = class_sums(false), window = class_sums(false);
    int64_t first = 0;
    for (const int64_t length : lengths) {
      window.add(std::vector{scores_for(kPredicted.narrow(0, first, length)), kTrue.narrow(0, first, length)});
      first += length;
      epoch.add(window);
      window.zero();
    }
    EXPECT_EQ(matrix_of_val(epoch), Json::parse("[[2, 1, 0], [0, 1, 1], [1, 0, 2]]"));
    const Measured measured = epoch.measured("val");
    EXPECT_EQ(value_of(measured, "val/accuracy"), 5.0 / 8.0);
    EXPECT_EQ(value_of(measured, "val/macro_f1"), (4.0 / 6.0 + 2.0 / 4.0 + 4.0 / 6.0) / 3.0);
    EXPECT_TRUE(measured.channels.empty());
  }
}

TEST(ClassSums, AreTheSameInFullAndKeepNoOutputs) {
  OutputMetrics full = class_sums(false, OutputMetrics::Keep::outputs);
  full.add(std::vector{scores_for(kPredicted), kTrue});
  full.add(std::vector{scores_for(kPredicted), kTrue});
  EXPECT_EQ(value_of(full.measured("val"), "val/accuracy"), 5.0 / 8.0);
  EXPECT_EQ(full.state().size(), 1u) << "counts are in checkpoints whatever the mode";
}

TEST(ClassSums, MaskedElementsAndLabelsOfNoClassDoNotCount) {
  OutputMetrics metrics = class_sums(true);
  const at::Tensor label = at::tensor({0, -100, 2, 3, 1, 1}, at::kInt).reshape({2, 3});
  const at::Tensor scores = scores_for(at::tensor({0, 0, 0, 0, 1, 2}, at::kLong).reshape({2, 3}));
  metrics.add(std::vector{scores, label, at::tensor({1, 1, 1, 1, 1, 0}, at::kByte).reshape({2, 3})});
  EXPECT_EQ(matrix_of_val(metrics), Json::parse("[[1, 0, 0], [0, 1, 0], [1, 0, 0]]"));
  metrics.zero();
  metrics.add(std::vector{scores, label, at::tensor({0, 1}, at::kFloat)});  // of whole samples
  EXPECT_EQ(matrix_of_val(metrics), Json::parse("[[0, 0, 0], [0, 1, 1], [0, 0, 0]]"));
  metrics.zero();
  metrics.add(std::vector{scores, label, at::zeros({2})});
  EXPECT_TRUE(metrics.measured("val").values.empty()) << "nothing counted";
  EXPECT_TRUE(metrics.measured("val").classes.empty());
}

TEST(ClassSums, OfEqualScoresTheFirstIsPredicted) {
  OutputMetrics metrics = class_sums(false);
  metrics.add(std::vector{at::zeros({2, kClasses}), at::tensor({0, 1}, at::kLong)});
  EXPECT_EQ(matrix_of_val(metrics), Json::parse("[[1, 0, 0], [1, 0, 0], [0, 0, 0]]"));
}

TEST(ClassSums, NoSamplesChangeNothing) {
  OutputMetrics metrics = class_sums(false);
  metrics.add(std::vector{at::zeros({0, kClasses}), at::zeros({0}, at::kLong)});
  EXPECT_TRUE(metrics.measured("val").values.empty());
}

// A matrix may be of many megabytes, and a run's sums are first added to when the weights have been updated: no step
// may ask for it.
TEST(ClassSums, AreMadeBeforeAnythingIsAdded) {
  OutputMetrics epoch = class_sums(false), window = class_sums(false);
  ASSERT_EQ(epoch.state().size(), 1u);
  const at::Tensor sums = epoch.state().front().second;
  EXPECT_EQ(sums.sum().item<int64_t>(), 0);
  window.add(std::vector{scores_for(kPredicted), kTrue});
  epoch.add(window);
  EXPECT_TRUE(epoch.state().front().second.is_same(sums));
  EXPECT_TRUE(class_sums(false).measured("val").classes.empty());
}

TEST(ClassSums, TakeClassesTimesClassesIntegersWhateverIsAdded) {
  OutputMetrics metrics = class_sums(false);
  metrics.add(std::vector{scores_for(kPredicted), kTrue});
  const at::Tensor sums = metrics.state().front().second;
  for (int i = 0; i < 20; ++i) metrics.add(std::vector{scores_for(kPredicted), kTrue});
  EXPECT_TRUE(metrics.state().front().second.is_same(sums));
  EXPECT_EQ(sums.nbytes(), kClasses * kClasses * sizeof(int64_t));
}

TEST(ClassSums, ComeBackFromACheckpoint) {
  OutputMetrics undisturbed = class_sums(false), resumed = class_sums(false);
  undisturbed.add(std::vector{scores_for(kPredicted), kTrue});
  const auto [name, saved] = undisturbed.state().front();
  EXPECT_EQ(name, "scores");
  const at::Tensor copy = saved.clone();
  resumed.add(std::vector{scores_for(kTrue), kTrue});  // what was there before goes
  resumed.restore([&](const std::string&) { return copy; });
  for (OutputMetrics* metrics : {&undisturbed, &resumed}) metrics->add(std::vector{scores_for(kTrue), kTrue});
  EXPECT_EQ(undisturbed.measured("val").classes, resumed.measured("val").classes);
  EXPECT_THAT([&] { resumed.restore([](const std::string&) {
                      return at::zeros({5, 2}, at::kDouble);
                    }); },
              ThrowsMessage<Error>(HasSubstr("what it holds of the output 'scores' is not int64 of shape [3, 3]")));
}

TEST(ClassSums, ShapesAndTypesThatDoNotSuitAreRefused) {
  OutputMetrics metrics = class_sums(false);
  const auto adding = [&](at::Tensor scores, at::Tensor label) {
    return [&metrics, scores, label] { metrics.add(std::vector{scores, label}); };
  };
  EXPECT_THAT(adding(at::zeros({4, 2}), at::zeros({4}, at::kLong)),
              ThrowsMessage<Error>(HasSubstr("[net] the output 'scores' is Float [4, 2] and its target 'label' has "
                                             "shape [4]: scores of 3 classes are")));
  EXPECT_THAT(adding(at::zeros({4, 3}), at::zeros({4, 1}, at::kLong)), ThrowsMessage<Error>(HasSubstr("[4, 1]")));
  EXPECT_THAT(adding(at::zeros({4, 3}), at::zeros({4})),
              ThrowsMessage<Error>(HasSubstr("'label' of the class scores 'scores' is Float: classes are integers")));
}

TEST(ClassPairs, AreMeasuredAsClassesAndTheOthersAsNumbers) {
  const std::vector<OutputInfo> outputs = {{"scores", "", HR_PREDICTION, ClassInfo{kClasses, "", {}, false}},
                                           {"pose", "rad"},
                                           {"label", "", HR_TARGET},
                                           {"truth", "", HR_TARGET}};
  const auto pairs = pair_outputs("net", outputs, {});
  std::string names;
  for (const MetricInfo& metric : host_metrics(pairs)) {
    names += metric.name + " ";
    if (metric.name.ends_with("_scores")) {
      EXPECT_EQ(metric.better, HR_HIGHER) << metric.name;
    }
  }
  EXPECT_EQ(names, "accuracy_scores macro_f1_scores mse_pose mae_pose rmse_pose r2_pose ");
  // The model's own accuracy wins; the matrix is the host's all the same.
  const auto own =
      pair_outputs("net", class_outputs(false), std::vector<MetricInfo>{{"accuracy", ""}, {"macro_f1", ""}});
  ASSERT_EQ(own.size(), 1u);
  EXPECT_TRUE(host_metrics(own).empty());
  OutputMetrics metrics(own);
  metrics.add(std::vector{scores_for(kPredicted), kTrue});
  EXPECT_TRUE(metrics.measured("val").values.empty());
  EXPECT_TRUE(metrics.measured("val").classes.contains("val/scores"));
}

}  // namespace
}  // namespace headroom
