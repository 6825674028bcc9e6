#include "report/examples.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "record/temporary_folder.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

class ExamplePage : public TemporaryFolder {
 protected:
  static Json evaluation(int step, int epoch, const Json& outputs) {
    return {{"step", step}, {"epoch", epoch}, {"samples", {{{"sample", 7}, {"outputs", outputs}}}}};
  }
  static Json series(const Json& prediction) {
    return Json::array(
        {{{"kind", "series"},
          {"name", "pose"},
          {"unit", "rad"},
          {"stride", 2},
          {"channels", {{{"channel", 5}, {"prediction", prediction}, {"target", {0.5, nullptr, 1.5}}}}}}});
  }
  static Json picture(const std::string& bytes) {
    const std::string uri = "data:image/png;base64,";
    return Json::array({{{"kind", "picture"},
                         {"name", "sharp"},
                         {"unit", ""},
                         {"inputs", {{{"name", "blur"}, {"picture", uri + "AAAA"}}}},
                         {"prediction", uri + bytes},
                         {"target", uri + "TTTT"}}});
  }
  std::string html(const Json& first, const Json& last) const {
    write_text(folder_ / examples_file, Json{{"format", 1}, {"first", first}, {"last", last}}.dump());
    return examples_html(folder_);
  }
};

TEST_F(ExamplePage, SeriesStandBesideTheirTarget) {
  const std::string page = html(evaluation(10, 1, series({0, 0, 0})), evaluation(90, 9, series({0.4, 0.9, 1.6})));
  for (const char* text :
       {"sample 7 of the validation split", "pose, channel 5", "rad", "target", "after epoch 1", "after epoch 9"})
    EXPECT_THAT(page, HasSubstr(text));
  const std::string once = html(evaluation(10, 1, series({0, 1, 2})), evaluation(10, 1, series({0, 1, 2})));
  const std::string drawn = "data-name=\"after epoch 1\"";
  EXPECT_NE(once.find(drawn), std::string::npos);
  EXPECT_EQ(once.find(drawn), once.rfind(drawn)) << "one evaluation is drawn once";
}

TEST_F(ExamplePage, PicturesStandBeforeAndAfter) {
  const std::string page = html(evaluation(10, 1, picture("FFFF")), evaluation(90, 9, picture("LLLL")));
  std::vector<size_t> places;
  for (const char* text : {"base64,AAAA", "base64,FFFF", "base64,LLLL", "base64,TTTT"})
    places.push_back(page.find(text));
  EXPECT_TRUE(std::ranges::is_sorted(places)) << page;
  EXPECT_NE(places.back(), std::string::npos);
  EXPECT_THAT(page, HasSubstr("alt=\"sharp after epoch 9\""));
}

TEST_F(ExamplePage, StandsWhatIsDamagedOrHostile) {
  EXPECT_EQ(examples_html(folder_), "") << "there is none";
  write_text(folder_ / examples_file, "{ torn");
  EXPECT_EQ(examples_html(folder_), "");
  EXPECT_EQ(html({}, {{"samples", 5}, {"step", "x"}}), "");
  EXPECT_EQ(html(5, evaluation(1, 1, {{{"kind", "series"}, {"channels", {5, {{"prediction", {{{"a", 1}}}}}}}}})), "");
  Json bad = picture("LLLL");
  bad[0]["name"] = "<script>";
  bad[0]["target"] = "data:image/png;base64,\"onerror=\"alert(1)";
  bad[0]["prediction"] = "https://example.org/x.png";
  const std::string page = html({}, evaluation(1, 1, bad));
  for (const char* text : {"<script>", "onerror", "https:"}) EXPECT_THAT(page, Not(HasSubstr(text)));
}

}  // namespace
}  // namespace headroom
