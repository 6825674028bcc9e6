#include "report/prediction.hpp"

#include <cmath>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace headroom {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two channels, three steps; errors 1 and 20 open loop, 0 ensembled, 2 and 0 held.
PredictedRecording told() {
  PredictedRecording told;
  told.origin = {"runs/act/one", "/data/episode_7.hdf5", "runs/act/one/checkpoints/step-00000012", 12};
  told.horizon = 2;
  told.channels = {{"waist", "rad", 0.0, 2.0}, {"<b>grip", "opening", 0.0, 10.0}};
  told.recorded = {1, 10, 2, 20, 3, 30};
  told.open_loop = {2, 30, 3, 0, 4, 50};
  told.ensembled = told.recorded;
  told.held = {3, 10, 4, 20, 5, 30};
  return told;
}

TEST(PredictedRecording, ErrorsAreOfEachChannelInItsUnit) {
  EXPECT_EQ(told().errors(told().open_loop), (std::vector<double>{1, 20}));
  EXPECT_EQ(told().errors(told().held), (std::vector<double>{2, 0}));
  EXPECT_EQ(told().error_in_std(told().open_loop), (1.0 / 2 + 20.0 / 10) / 2);
}

TEST(PredictedRecording, TableAndJsonSayTheSame) {
  EXPECT_EQ(told().table(),
            "mean absolute error  open loop  ensembled  hold last  unit\n"
            "waist                        1          0          2  rad\n"
            "<b>grip                     20          0          0  opening\n"
            "all                       1.25          0        0.5  standard deviations\n");
  const nlohmann::json json = told().json();
  EXPECT_EQ(json.at("steps"), 3);
  EXPECT_EQ(
      json.at("mean_absolute_error")[1],
      (nlohmann::json{
          {"name", "<b>grip"}, {"unit", "opening"}, {"open_loop", 20.0}, {"ensembled", 0.0}, {"hold_last", 0.0}}));
  EXPECT_EQ(json.at("all_in_std").at("hold_last"), 0.5);
}

TEST(PredictedRecording, ThePageHasAChartForEveryChannelAndAsksForNothing) {
  std::string html = told().page();
  for (const char* text : {"<h1>episode_7.hdf5</h1>", "waist", "&lt;b&gt;grip", "data-name=\"recorded\"",
                           "data-name=\"open loop\"", "data-name=\"ensembled\"", "1.25 std"})
    EXPECT_THAT(html, HasSubstr(text));
  for (size_t at = 0; (at = html.find("http://www.w3.org/2000/svg")) != std::string::npos;) html.erase(at, 26);
  for (const char* text : {"<b>grip", "http:", "https:", "src="}) EXPECT_THAT(html, Not(HasSubstr(text)));
}

TEST(PredictedPictures, TheMeanIsOverTheStepsThatDiffer) {
  PredictedPictures told;
  told.before = "blur";
  told.steps = {{30, 20}, {INFINITY, 40}, {50, INFINITY}};
  EXPECT_EQ(told.psnr_db(), 40.0);
  EXPECT_EQ(told.text(), "3 pictures, PSNR 40 dB, of blur 30 dB\n");
  EXPECT_EQ(told.json().at("psnr_db"), 40.0);
  EXPECT_TRUE(told.json().at("steps")[1].at("psnr_db").is_null());
  told.steps = {{INFINITY, INFINITY}};
  EXPECT_EQ(told.text(), "1 pictures, PSNR equal, of blur equal\n");
  told.steps = {{std::nullopt, std::nullopt}};
  EXPECT_FALSE(told.psnr_db());
}

}  // namespace
}  // namespace headroom
