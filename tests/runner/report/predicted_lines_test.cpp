#include "report/predicted_lines.hpp"

#include <cmath>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace headroom {
namespace {

using testing::HasSubstr;
using testing::Not;

PredictedLines told(const std::string& second_unit = "N") {
  PredictedLines lines({"runs/one", "/data/press.hdf5", "runs/one/checkpoints/step-00000012", 12}, "force",
                       {{"<b>x", "N", 0.0, 1.0}, {"y", second_unit, 0.0, 1.0}});
  lines.begin("press:episode 0");
  lines.add(0, {{1, 10}, {0, 0}, {2, 13}, {1, 1}});
  lines.add(1, {{4, 10}, {2, 13}, {7, 11}, {1, 1}});
  // What does not count, and what is no number.
  lines.add(2, {{1, 90}, {2, 13}, {900, NAN}, {0, 1}});
  lines.begin("press:episode 1");
  lines.add(5, {{1, 2}, {1, 2}, {0, 2}, {1, 1}});
  return lines;
}

TEST(PredictedLines, ErrorsAreOfWhatCountsInAllRecordings) {
  EXPECT_EQ(told().predicted_errors(), (std::vector<double>{(1.0 + 3.0 + 1.0) / 3, (3.0 + 1.0 + 0.0) / 3}));
  EXPECT_EQ(told().held_errors(), (std::vector<double>{(2.0 + 5.0 + 1.0) / 3, (13.0 + 2.0 + 0.0) / 3}));
}

TEST(PredictedLines, UnitsThatDifferHaveNoSum) {
  EXPECT_THAT(told().table(), HasSubstr("mean absolute error  prediction  hold last  unit\n"));
  EXPECT_THAT(told().table(), HasSubstr("\nall "));
  EXPECT_THAT(told("mm").table(), Not(HasSubstr("\nall ")));
  const nlohmann::json json = told("mm").json();
  EXPECT_EQ(json.at("field"), "force");
  EXPECT_EQ(json.at("mean_absolute_error")[1].at("unit"), "mm");
  EXPECT_EQ(json.at("recordings"), nlohmann::json::parse(R"([{"name": "press:episode 0", "rows": 3},
                                                             {"name": "press:episode 1", "rows": 1}])"));
}

TEST(PredictedLines, NothingThatCountsIsNoError) {
  PredictedLines lines({}, "force", {{"x", "N", 0.0, 1.0}});
  lines.begin("one");
  lines.add(0, {{1}, {1}, {1}, {0}});
  EXPECT_TRUE(lines.json().at("mean_absolute_error")[0].at("prediction").is_null());
}

TEST(PredictedLines, ThePageHasAChartForEachChannelOfEachRecording) {
  std::string html = told().page();
  for (const char* text : {"<h1>press.hdf5</h1>", "press:episode 1", "&lt;b&gt;x", "data-name=\"recorded\"",
                           "data-name=\"hold last\"", "data-name=\"prediction\"", "mean absolute error of force"})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_THAT(html, Not(HasSubstr("<b>x")));
  EXPECT_THAT(html, Not(HasSubstr("charts are drawn")));
}

TEST(PredictedLines, ManyRecordingsAreNotAllDrawn) {
  PredictedLines lines({}, "force", {{"x", "N", 0.0, 1.0}});
  for (int recording = 0; recording < 100; ++recording) {
    lines.begin(std::to_string(recording));
    lines.add(0, {{1}, {1}, {1}, {1}});
  }
  EXPECT_THAT(lines.page(), HasSubstr("40 of 100 charts are drawn"));
}

}  // namespace
}  // namespace headroom
