#include <gmock/gmock.h>

#include "../../end_to_end/program.hpp"
#include "report/written_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class RunsCommand : public TemporaryFolder {
 protected:
  Finished headroom(std::vector<std::string> words) const {
    return headroom_program(std::move(words),
                            {.folder = folder_, .environment = {"XDG_CACHE_HOME=" + (folder_ / "cache").string()}});
  }
  fs::path write(const WrittenRun& run) const { return write_run(folder_ / "runs", run); }
};

TEST_F(RunsCommand, ListsSortsAndFilters) {
  write({.name = "better", .val_loss = 0.1});
  write({.name = "worse", .batch_size = 16, .val_loss = 0.7});
  write({.name = "broken", .state = "failed", .val_loss = 0.9});
  const Finished all = headroom({"runs", "list", "--sort", "val/loss", "--show", "train.batch_size"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_THAT(all.out, testing::StartsWith("state "));
  EXPECT_LT(all.out.find("runs/better"), all.out.find("runs/worse"));
  EXPECT_LT(all.out.find("runs/worse"), all.out.find("runs/broken"));
  EXPECT_THAT(all.out, HasSubstr("310.0 MiB"));
  const Finished good =
      headroom({"runs", "list", "--where", "val/loss < 0.8", "--where", "train.batch_size > 8", "--json"});
  const Json listed = Json::parse(good.out);
  ASSERT_EQ(listed.size(), 1u) << good.out;
  EXPECT_EQ(listed[0].at("name"), "worse");
  EXPECT_EQ(listed[0].at("metrics").at("val/loss"), 0.7);
  EXPECT_THAT(headroom({"runs", "list", "--state", "failed", "--csv"}).out,
              HasSubstr("run,name,state,started,steps,best,peak_bytes,samples_per_second\nruns/broken/"));
  EXPECT_EQ(headroom({"runs", "list", "--name", "nobody"}).out, "no runs\n");
  EXPECT_TRUE(fs::exists(folder_ / "cache/headroom/runs"));
}

TEST_F(RunsCommand, SaysWhatItDoesNotUnderstand) {
  EXPECT_EQ(headroom({"runs", "list"}).exit_code, 2);
  EXPECT_THAT(headroom({"runs", "list"}).err, HasSubstr("[runs] runs: there is no such folder"));
  write({});
  EXPECT_THAT(headroom({"runs", "list", "--where", "val/loss"}).err, HasSubstr("expected a key"));
  EXPECT_THAT(headroom({"runs", "show", "nothing"}).err, HasSubstr("nothing is no run"));
  EXPECT_EQ(headroom({"runs", "export", "nothing", "--csv"}).exit_code, 2);
  EXPECT_EQ(headroom({"report", "nothing"}).exit_code, 2);
}

TEST_F(RunsCommand, ShowsComparesAndExportsByTheEndOfAName) {
  const std::string a = write({.name = "a", .val_loss = 0.25}).filename().string(),
                    b = write({.name = "b", .val_loss = 0.26}).filename().string();
  const Finished shown = headroom({"runs", "show", a.substr(a.size() - 6)});
  EXPECT_THAT(shown.out, HasSubstr("val/loss                 0.25\n")) << shown.err;
  const Finished compared = headroom({"runs", "compare", a, b});
  EXPECT_THAT(compared.out, HasSubstr("experiment.name")) << compared.err;
  EXPECT_THAT(compared.out, Not(HasSubstr("train.batch_size")));
  EXPECT_THAT(
      compared.out,
      HasSubstr("val/loss differs by 0.03846 of itself, more than the 0.001 that is usual for rounding; rounding"));
  EXPECT_FALSE(
      Json::parse(headroom({"runs", "compare", a, b, "--json"}).out).at("identities")[0].at("agrees").get<bool>());
  EXPECT_THAT(headroom({"runs", "export", a, "--csv"}).out, HasSubstr("\n20,1,0.05,0.001,0.5,0.3\n"));
  EXPECT_THAT(headroom({"runs", "export", b, "--jsonl"}).out, HasSubstr("\"val/loss\":0.31"));
  EXPECT_EQ(headroom({"runs", "export", b}).exit_code, 2);
}

// Shells end a folder's name with a slash.
TEST_F(RunsCommand, TakesFoldersHoweverTheyAreSpelt) {
  const fs::path a = write({.name = "a"}), b = write({.name = "b", .val_loss = 0.26});
  const Finished compared = headroom({"runs", "compare", a.string() + "/", b.string() + "/."});
  EXPECT_THAT(compared.out, HasSubstr(a.filename().string() + "  " + b.filename().string() + "\n")) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr(": " + a.filename().string() + ", " + b.filename().string() + ": "));
  fs::remove(a / "events.jsonl");
  for (const std::string& word : {a.string() + "/", a.string() + "/."}) {
    EXPECT_THAT(headroom({"runs", "show", word, "--json"}).out, HasSubstr("\"name\": \"a\"")) << word;
    EXPECT_EQ(headroom({"report", word}).exit_code, 0);
    EXPECT_THAT(read_text(a / "report.html"), HasSubstr("<h1>a</h1>")) << word;
    EXPECT_THAT(read_text(a / "report.html"), HasSubstr("<small>" + a.filename().string())) << word;
  }
}

TEST_F(RunsCommand, ComparesARunThatIsRunning) {
  const fs::path begun = write({.name = "begun", .state = ""}), ended = write({.name = "ended"});
  const auto compared = [&] {
    const Finished finished = headroom({"runs", "compare", begun.string(), ended.string(), "--json"});
    return Json::parse(finished.out).at("facts").at("state");
  };
  EXPECT_EQ(compared(), (Json{"ended_badly", "finished"}));
  const RunFolder held = RunFolder::open(begun);
  EXPECT_EQ(compared(), (Json{"running", "finished"}));
}

TEST_F(RunsCommand, MakesReportsAgain) {
  const fs::path run = write({.name = "a"});
  const Finished made = headroom({"report", run.string()});
  EXPECT_EQ(made.out, (run / "report.html").string() + "\n") << made.err;
  EXPECT_THAT(read_text(run / "report.html"), HasSubstr("<h1>a</h1>"));
  write_text(folder_ / "results.json", R"({"name": "grid", "metric": "val/loss", "trials": []})");
  EXPECT_EQ(headroom({"report", folder_.string()}).exit_code, 0);
  EXPECT_THAT(read_text(folder_ / "report.html"), HasSubstr("<h1>grid</h1>"));
}

}  // namespace
}  // namespace headroom
