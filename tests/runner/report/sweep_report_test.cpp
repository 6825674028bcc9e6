#include "report/sweep_report.hpp"

#include <gmock/gmock.h>

#include "error.hpp"
#include "record/temporary_folder.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

class SweepReport : public TemporaryFolder {
 protected:
  static Json trial(const std::string& id, int batch_size, int accumulation, const std::string& state = "finished") {
    Json json = {{"id", id},
                 {"state", state},
                 {"set",
                  {{"train.batch_size", std::to_string(batch_size)},
                   {"train.gradient_accumulation_steps", std::to_string(accumulation)}}},
                 {"predicted_peak_bytes", int64_t{batch_size} << 24}};
    if (state == "finished") {
      json.update({{"identity", "abcdef0123"},
                   {"run", "trials/" + id + "/emg/20261121-000000-abcdef"},
                   {"peak_bytes", int64_t{batch_size} << 23},
                   {"samples_per_second", 100.0 * batch_size},
                   {"metric", 1.0 / batch_size}});
    }
    return json;
  }
  void write(const Json& trials, Json more = Json::object()) const {
    more.update({{"format", 1}, {"name", "grid"}, {"metric", "val/loss"}, {"trials", trials}});
    write_text(folder_ / "results.json", more.dump());
  }
};

TEST_F(SweepReport, ShowsHeatMapsFrontsAndEveryTrial) {
  write({trial("000_a", 8, 1), trial("001_b", 16, 1), trial("002_c", 8, 2), trial("003_d", 16, 2, "infeasible"),
         trial("004_e", 128, 1, "pruned"), trial("005_f", 128, 2, "failed")},
        {{"best", "001_b"},
         {"counts", {{"finished", 3}, {"infeasible", 1}}},
         {"identities",
          {{{"identity", "abcdef0123"},
            {"trials", {"000_a", "002_c"}},
            {"metric", "val/loss"},
            {"largest_difference", 0.5},
            {"tolerance", 1e-8},
            {"agrees", false}}}}});
  const std::string html = sweep_report(folder_);
  for (const char* text :
       {"sweep of 6 trials: 3 finished, 1 infeasible", "<caption>peak memory<small>down: train.batch_size",
        "<caption>samples per second<", "<caption>val/loss<", "infeasible, 256.0 MiB", "pruned, 2.0 GiB",
        "<span>failed</span>", "64.0 MiB", "val/loss against peak memory", "samples per second against peak memory",
        "class=\"sortable\"", "href=\"./trials/001_b/emg/20261121-000000-abcdef/report.html\"",
        "differ by more than is usual for rounding", "<tr class=\"best\">"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  // Rows and columns in rising order of their numbers, not of their letters.
  EXPECT_LT(html.find("<th scope=\"row\">16</th>"), html.find("<th scope=\"row\">128</th>"));
}

TEST_F(SweepReport, AKeyThatRepeatsAnotherHasNoHeatMaps) {
  Json trials = {trial("000_a", 8, 1), trial("001_b", 16, 1), trial("002_c", 8, 2)};
  for (Json& one : trials) one["set"]["train.micro_batch"] = one["set"]["train.batch_size"];
  write(trials);
  const std::string html = sweep_report(folder_);
  EXPECT_THAT(html, HasSubstr("<caption>peak memory<small>down: train.batch_size"));
  EXPECT_THAT(html, Not(HasSubstr("across: train.micro_batch")));
  EXPECT_THAT(html, Not(HasSubstr("More than two keys")));
  trials[0]["set"]["train.micro_batch"] = "4";
  write(trials);
  EXPECT_THAT(sweep_report(folder_), HasSubstr("across: train.micro_batch"));
}

TEST_F(SweepReport, ShowsWhatSmallerBatchesCostAndSave) {
  Json whole = trial("a", 64, 1), quarter = trial("b", 16, 4), other = trial("c", 32, 1);
  whole["samples_per_second"] = 200.0;
  quarter["samples_per_second"] = 150.0;
  other["identity"] = "else";
  write({quarter, whole, other});
  const std::string html = sweep_report(folder_);
  EXPECT_THAT(html, HasSubstr("Memory against speed"));
  EXPECT_THAT(html, HasSubstr("of 64 x 1"));
  const size_t row = html.find("16 x 4</");
  ASSERT_NE(row, std::string::npos);
  const std::string cells = html.substr(row, html.find("</tr>", row) - row);
  for (const char* text : {"128.0 MiB", "25 %", "150", "75 %", "25 % memory, 85 % speed"})
    EXPECT_THAT(cells, HasSubstr(text));
  EXPECT_EQ(html.find("32 x 1</td>"), std::string::npos) << "nothing to compare it with";
  write(Json::array({trial("a", 64, 1)}));
  EXPECT_THAT(sweep_report(folder_), Not(HasSubstr("Memory against speed")));
}

TEST_F(SweepReport, EscapesWhatStrangersNamed) {
  const std::string hostile = "<img src=x onerror=alert(1)>\"'&";
  Json bad = trial(hostile, 8, 1);
  bad["set"][hostile] = hostile;
  bad["why"] = hostile;
  bad["run"] = "trials/\"><img>/javascript:alert(1)";
  write({bad, trial("x", 16, 1)}, {{"best", hostile}, {"counts", {{hostile, 1}}}});
  const std::string html = sweep_report(folder_);
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, HasSubstr("href=\"./trials/%22%3E%3Cimg%3E/javascript%3Aalert%281%29/report.html\""));
}

TEST_F(SweepReport, StandsWhatIsNotThereYet) {
  write(Json::array());
  EXPECT_THAT(sweep_report(folder_), HasSubstr("sweep of 0 trials"));
  write({trial("a", 8, 1, "waiting"), Json(5), Json{{"set", 5}}, trial("b", 16, 1, "running")}, {{"identities", 5}});
  EXPECT_THAT(sweep_report(folder_), HasSubstr("running"));
  write_text(folder_ / "results.json", "{\"trials\"");
  EXPECT_THAT(sentence_of([&] { sweep_report(folder_); }), HasSubstr("results.json is missing or damaged"));
}

TEST_F(SweepReport, FindsTheDirectionOfTheMetric) {
  Json low = trial("low", 8, 1), high = trial("high", 16, 1);
  low["metric"] = 0.1;
  high["metric"] = 0.9;
  write({low, high}, {{"best", "high"}, {"better", "higher"}});
  EXPECT_FALSE(read_sweep(folder_).lower_wins);
  write({low, high}, {{"best", "low"}});
  EXPECT_TRUE(read_sweep(folder_).lower_wins);
}

TEST(ParetoFront, HoldsWhatNobodyBeats) {
  const std::vector<ParetoPoint> points = {{5, 5}, {1, 9}, {3, 4}, {3, 3}, {9, 3}, {2, 9}, {8, 1}};
  EXPECT_THAT(pareto_front(points, /*lower_wins=*/true), ElementsAre(1, 3, 6));
  EXPECT_THAT(pareto_front(points, /*lower_wins=*/false), ElementsAre(1));
  EXPECT_THAT(pareto_front({}, true), ElementsAre());
}

}  // namespace
}  // namespace headroom
