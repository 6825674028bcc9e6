// Confusion matrices on a page and in lines; damaged ones leave no trace.
#include "report/confusion.hpp"

#include <gmock/gmock.h>

namespace headroom {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Two classes, three mistakes, a name that would break the page.
const Json kTwoClasses = Json::parse(R"({"val/scores": {"count": 10, "support": [8, 2], "predicted": [7, 3],
    "precision": [0.857142, null], "recall": [0.75, 0.5], "f1": [0.8, 0.4], "names": ["a<b", "dog"],
    "confused": [{"true": 0, "predicted": 1, "count": 2, "share": 0.25}, {"true": 1, "predicted": 0, "count": 1}],
    "matrix": [[6, 2], [1, 1]]}})");

Json many_classes(size_t classes) {
  Json matrix = Json::array(), support = Json::array();
  for (size_t row = 0; row < classes; ++row) {
    std::vector<uint64_t> cells(classes, 0);
    cells[row] = 3, cells[(row + 1) % classes] = 1;
    matrix.push_back(cells);
    support.push_back(uint64_t{4});
  }
  Json all = Json::object();
  all["val/scores"] = {{"support", support}, {"matrix", matrix}};
  return all;
}

TEST(Confusion, OfFewClassesHasCountsAndPercentagesOfTheRow) {
  const std::string html = confusion_html(kTwoClasses);
  for (const char* text : {"a&lt;b", ">6<br>", "75 %", ">2<br>", "25 %", "50 %", "val/scores", "0.857"})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_THAT(html, Not(HasSubstr("a<b")));
  // Rows are true: the first has 6 and 2.
  EXPECT_LT(html.find(">6<br>"), html.find(">2<br>"));
}

TEST(Confusion, OfAHundredClassesIsAPictureOfSquares) {
  const std::string html = confusion_html(many_classes(100));
  EXPECT_THAT(html, HasSubstr("<title>true 7, predicted 8: 1, 25 %</title>"));
  EXPECT_THAT(html, Not(HasSubstr("class=\"heat\"")));
  size_t squares = 0;
  for (size_t at = html.find("<title>"); at != std::string::npos; at = html.find("<title>", at + 1)) ++squares;
  EXPECT_EQ(squares, 200u) << "cells without a count are the ground";
}

TEST(Confusion, NamesTheMostFrequentMistakes) {
  EXPECT_THAT(confused_lines(kTwoClasses), ElementsAre("val/scores: 'a<b' taken for 'dog' 2 times, 25 % of 'a<b'",
                                                       "val/scores: 'dog' taken for 'a<b' 1 time, 50 % of 'dog'"));
  EXPECT_EQ(confused_lines(kTwoClasses, 1).size(), 1u);
  Json both = kTwoClasses;
  both["train/scores"] = kTwoClasses.at("val/scores");
  EXPECT_EQ(confused_lines(both).size(), 2u) << "those of training only where there is no validation";
  both.erase("val/scores");
  EXPECT_EQ(confused_lines(both).size(), 2u);
}

TEST(Confusion, DamagedOnesLeaveNoTrace) {
  for (const char* text : {"null", "[]", "5", R"({"val/s": 3})", R"({"val/s": {"support": "x"}})",
                           R"({"val/s": {"support": [1, -2]}})", R"({"val/s": {"support": []}})"}) {
    EXPECT_EQ(confusion_html(Json::parse(text)), "") << text;
    EXPECT_TRUE(confused_lines(Json::parse(text)).empty()) << text;
  }
  Json torn = kTwoClasses;
  torn["val/scores"]["matrix"] = Json::parse("[[1, 2], [3]]");
  torn["val/scores"]["confused"] = Json::parse(R"([3, {"true": 7, "predicted": 0, "count": 1}])");
  EXPECT_THAT(confusion_html(torn), Not(HasSubstr("class=\"heat\"")));
  EXPECT_TRUE(confused_lines(torn).empty());
}

}  // namespace
}  // namespace headroom
