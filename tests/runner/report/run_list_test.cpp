#include <gmock/gmock.h>
#include <sqlite3.h>

#include "error.hpp"
#include "report/comparison.hpp"
#include "report/run_facts.hpp"
#include "report/run_index.hpp"
#include "report/wide_table.hpp"
#include "written_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RunList : public TemporaryFolder {
 protected:
  ListedRuns list() const { return list_runs(runs_(), index()); }
  fs::path runs_() const { return folder_ / "runs"; }
  fs::path index() const { return folder_ / "cache" / "index.sqlite"; }
  static std::vector<std::string> names(const std::vector<RunFacts>& runs) {
    std::vector<std::string> names;
    for (const RunFacts& run : runs) names.push_back(run.word("name"));
    return names;
  }
};

TEST_F(RunList, KnowsWhatTheFoldersSay) {
  write_run(runs_(), {.name = "a", .batch_size = 16});
  const ListedRuns listed = list();
  ASSERT_EQ(listed.runs.size(), 1u);
  const RunFacts& run = listed.runs.front();
  EXPECT_EQ(run.word("state"), "finished");
  EXPECT_EQ(run.word("metric"), "val/loss");
  EXPECT_EQ(run.number("val/loss"), 0.25);
  EXPECT_EQ(run.number("train.batch_size"), 16);
  EXPECT_EQ(run.number("peak_bytes"), 310 << 20);
  EXPECT_EQ(run.number("samples_per_second"), 20 * 16 / 2.0);
  EXPECT_EQ(run.text("experiment.name"), "a");
}

// A run may be a stranger's. toml++ calls itself for every part of a key.
TEST_F(RunList, StandsSettingsThatAreDamaged) {
  const fs::path run = write_run(runs_(), {.name = "a"});
  std::string deep = "a";
  for (int i = 0; i < 500'000; ++i) deep += ".a";
  for (const std::string& text : {deep + " = 1\n", std::string("[experiment\n"), std::string("name = \"\xff\"\n")}) {
    write_text(run / "experiment.toml", text);
    const RunFacts facts = read_run_facts(run);
    EXPECT_TRUE(facts.settings.empty());
    EXPECT_EQ(facts.word("state"), "finished");
  }
}

TEST_F(RunList, StandsJsonThatIsDamaged) {
  const fs::path run = write_run(runs_(), {.name = "a"});
  const std::string deep = "{\"best\": " + std::string(500'000, '[') + std::string(500'000, ']') + "}";
  write_text(run / "summary.json", deep);
  write_text(run / "events.jsonl", deep + "\n");
  EXPECT_EQ(read_run_facts(run).word("state"), "ended_badly");
  fs::remove(run / "summary.json");
  fs::create_directory(run / "summary.json");
  EXPECT_EQ(read_run_facts(run).word("state"), "ended_badly");
}

// As text "64 MiB" is above "1 GiB".
TEST_F(RunList, SizesAndDurationsAreComparedAsWhatTheyAre) {
  const fs::path run = write_run(runs_(), {.name = "a"});
  write_text(run / "experiment.toml", "data.cache_size = \"64 MiB\"\nmemory.wait = \"10 min\"\n");
  std::vector<RunFacts> facts = {read_run_facts(run), read_run_facts(run)};
  for (const char* holds : {"data.cache_size < 1 GiB", "data.cache_size == 67108864", "memory.wait >= 90 s",
                            "memory.wait == 600", "memory.wait < 1 h"})
    EXPECT_TRUE(RunFilter(holds).holds(facts[0])) << holds;
  EXPECT_FALSE(RunFilter("data.cache_size > 1 GiB").holds(facts[0]));
  facts[1].settings["data.cache_size"] = "1 GiB";
  sort_runs(facts, "data.cache_size", /*descending=*/true);
  EXPECT_EQ(facts[0].text("data.cache_size"), "1 GiB");
}

TEST_F(RunList, ReadsOnlyWhatChanged) {
  const fs::path a = write_run(runs_(), {.name = "a"}), b = write_run(runs_() / "sweep/1/trials", {.name = "b"});
  EXPECT_EQ(list().read_anew, 2u);
  const ListedRuns again = list();
  EXPECT_EQ(again.read_anew, 0u);
  EXPECT_THAT(names(again.runs), ElementsAre("a", "b"));
  EXPECT_EQ(again.runs[0].number("val/loss"), 0.25);

  write_text(a / "summary.json", R"({"state": "failed", "metrics": {"val/loss": 7.5}})");
  const ListedRuns changed = list();
  EXPECT_EQ(changed.read_anew, 1u);
  EXPECT_EQ(changed.runs[0].word("state"), "failed");
  EXPECT_EQ(changed.runs[0].number("val/loss"), 7.5);

  fs::remove_all(b);
  EXPECT_THAT(names(list().runs), ElementsAre("a"));
}

TEST_F(RunList, OutlivesItsIndex) {
  write_run(runs_(), {.name = "a"});
  list();
  fs::remove_all(index().parent_path());  // deleted
  EXPECT_EQ(list().read_anew, 1u);
  EXPECT_EQ(list().read_anew, 0u);
  for (const char* end : {"-wal", "-shm"}) fs::remove(index().string() + end);
  write_text(index(), std::string(5000, 'x'));  // damaged
  EXPECT_EQ(list().read_anew, 1u);
  EXPECT_EQ(list().read_anew, 0u);
}

TEST_F(RunList, WorksWhileItsIndexIsLocked) {
  write_run(runs_(), {.name = "a"});
  list();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(index().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  write_run(runs_(), {.name = "b"});
  EXPECT_THAT(names(list().runs), ElementsAre("a", "b"));
  sqlite3_close(other);
  EXPECT_THAT(names(list().runs), ElementsAre("a", "b"));
  EXPECT_EQ(list().read_anew, 0u);
}

TEST_F(RunList, WorksWhereThereIsNoPlaceForAnIndex) {
  write_run(runs_(), {.name = "a"});
  write_text(folder_ / "cache", "a file, no folder");
  EXPECT_EQ(list().runs.size(), 1u);
  EXPECT_EQ(list_runs(runs_(), {}).runs.size(), 1u);
}

TEST_F(RunList, StandsDamagedFolders) {
  const fs::path run = write_run(runs_(), {.name = "a"});
  write_text(run / "summary.json", "{\"state\": 5, \"metrics\": [], \"memory\": 3, \"best\": \"x\"}");
  write_text(run / "experiment.toml", "not toml [");
  write_text(run / "events.jsonl", "\xff\n");
  const ListedRuns listed = list();
  ASSERT_EQ(listed.runs.size(), 1u);
  EXPECT_EQ(listed.runs[0].word("name"), "a");
  EXPECT_EQ(list().read_anew, 0u);
}

TEST_F(RunList, SaysWhichRunsAreRunning) {
  const fs::path run = write_run(runs_(), {.name = "a"});
  {
    const RunFolder held = RunFolder::open(run);
    EXPECT_EQ(list().runs[0].word("state"), "running");
  }
  EXPECT_EQ(list().runs[0].word("state"), "finished");
}

TEST_F(RunList, FiltersByMetricsFactsAndSettings) {
  const RunFacts run = read_run_facts(write_run(runs_(), {.name = "a", .batch_size = 16}));
  for (const char* text :
       {"val/loss < 0.3", "val/loss<=0.25", "val/loss == 0.25", "train.batch_size = 16", "state == finished",
        "state != failed", "peak_bytes < 1 GiB", "peak_bytes > 300 MiB", "name == 'a'", "nothing != 5"}) {
    EXPECT_TRUE(RunFilter(text).holds(run)) << text;
  }
  for (const char* text : {"val/loss < 0.25", "val/loss > 1", "train.batch_size == 8", "state == failed",
                           "nothing == 5", "nothing < 5", "peak_bytes > 1 GiB"}) {
    EXPECT_FALSE(RunFilter(text).holds(run)) << text;
  }
  for (const char* text : {"", "val/loss", "val/loss <", "< 5", "a <> 5", "a =< 5"})
    EXPECT_THAT(sentence_of([&] { RunFilter filter(text); }), HasSubstr("expected a key")) << text;
}

TEST_F(RunList, SortsWithWhatIsMissingLast) {
  std::vector<RunFacts> runs(4);
  runs[0].numbers["x"] = 2;
  runs[2].numbers["x"] = NAN;
  runs[3].numbers["x"] = 1;
  for (size_t i = 0; i < runs.size(); ++i) runs[i].words["name"] = std::to_string(i);
  sort_runs(runs, "x", false);
  EXPECT_THAT(names(runs), ElementsAre("3", "0", "2", "1"));
  sort_runs(runs, "x", true);
  EXPECT_THAT(names(runs), ElementsAre("0", "3", "2", "1"));
}

TEST_F(RunList, ComparesSettingsAndEqualMathematics) {
  std::vector<RunFacts> runs;
  for (const WrittenRun& run : {WrittenRun{.name = "a"}, WrittenRun{.name = "b", .val_loss = 0.250001},
                                WrittenRun{.name = "c", .identity = "bb22", .batch_size = 9}})
    runs.push_back(read_run_facts(write_run(runs_(), run)));
  const Comparison comparison = compare_runs(runs);
  ASSERT_EQ(comparison.settings.size(), 2u);
  EXPECT_EQ(comparison.settings[1].key, "train.batch_size");
  EXPECT_THAT(comparison.settings[1].values, ElementsAre("8", "8", "9"));
  ASSERT_EQ(comparison.identities.size(), 1u);
  EXPECT_THAT(comparison.identities[0].runs, ElementsAre(0, 1));
  EXPECT_EQ(comparison.identities[0].agreement.metric, "val/loss");
  EXPECT_EQ(comparison.identities[0].agreement.compared, 2);
  EXPECT_TRUE(comparison.identities[0].agreement.agrees());
}

TEST_F(RunList, FlagsADifferenceThatRoundingDoesNotExplain) {
  std::vector<RunFacts> runs;
  for (const double loss : {0.25, 0.26})
    runs.push_back(read_run_facts(write_run(runs_(), {.name = "a", .val_loss = loss})));
  EXPECT_FALSE(compare_runs(runs).identities.at(0).agreement.agrees());
  runs.clear();
  for (const double loss : {0.25, 0.250001})
    runs.push_back(read_run_facts(write_run(runs_(), {.name = "d", .precision = "fp64", .val_loss = loss})));
  EXPECT_FALSE(compare_runs(runs).identities.at(0).agreement.agrees());
}

TEST_F(RunList, ExportsARowAStep) {
  const fs::path run = write_run(runs_(), {.name = "a", .steps = 6});
  const auto exported = [&](auto write) {
    std::FILE* file = std::fopen((folder_ / "out").c_str(), "w");
    write(run, file);
    std::fclose(file);
    return read_text(folder_ / "out");
  };
  const std::string csv = exported(export_csv);
  EXPECT_THAT(csv, testing::StartsWith("step,epoch,train/loss_step,train/lr,train/loss,val/loss\n1,1,1,0.001,,\n"));
  EXPECT_THAT(csv, HasSubstr("\n5,1,0.2,0.001,0.5,0.45\n6,1,"));
  EXPECT_THAT(exported(export_jsonl), HasSubstr(R"({"step":5,"epoch":1,"train/loss_step":0.2,"train/lr":0.001,)"));
  EXPECT_THROW(export_csv(folder_, stdout), Error);
}

}  // namespace
}  // namespace headroom
