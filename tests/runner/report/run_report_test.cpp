#include "report/run_report.hpp"

#include <fstream>
#include <gmock/gmock.h>

#include "error.hpp"
#include "record/postmortem.hpp"
#include "report/run_reading.hpp"
#include "written_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class RunReport : public TemporaryFolder {};

TEST_F(RunReport, ShowsWhatARunLeft) {
  const nlohmann::json data = {
      {"cache", {{"hits", 1200}, {"hit_rate", 0.5}, {"kept_bytes", {{"train", 64 << 20}}}}},
      {"loader",
       {{"stages", {{"read", {{"seconds", 2.5}, {"count", 10}}}, {"decode", {{"seconds", 0.25}, {"count", 10}}}}}}}};
  const std::string html = run_report(write_run(folder_, {.data = data}));
  for (const char* text :
       {"<h1>emg</h1>", "finished", "learning rate", "Memory by owner", "activations", "predicted peak",
        "limit 400.0 MiB", "gc points: 4", "1,200", "50 %", "64.0 MiB", "<th scope=\"row\">decode</th>", "250 ms",
        "batch_size = 8", "viewport", "prefers-color-scheme: dark"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
}

// As the log has them: in the order of their names.
TEST_F(RunReport, NumberedMetricsComeLast) {
  RunFolder folder = RunFolder::create(folder_, "x");
  write_text(folder.path() / "experiment.toml", "");
  {
    RunLog log(folder);
    log.event("start", {{"name", "x"}});
    for (int step = 1; step < 4; ++step)
      log.scalars(step, 1, {{"val/error_0", 1.0 / step}, {"val/error_10", 2.0 / step}, {"val/l1", 3.0 / step}});
  }
  const std::string html = run_report(folder.path());
  EXPECT_LT(html.find(">l1<"), html.find(">error 0<")) << html;
  EXPECT_LT(html.find(">error 0<"), html.find(">error 10<"));
  EXPECT_NE(html.find(">error 10<"), std::string::npos);
}

TEST_F(RunReport, IsOneFileThatAsksForNothing) {
  std::string html = run_report(write_run(folder_, {}));
  for (size_t at = 0; (at = html.find("http://www.w3.org/2000/svg")) != std::string::npos;) html.erase(at, 26);
  for (const char* text : {"http:", "https:", "src=", "@import", "url(", "<link"})
    EXPECT_THAT(html, Not(HasSubstr(text)));
}

TEST_F(RunReport, IsTheSameEveryTime) {
  const fs::path run = write_run(folder_, {});
  EXPECT_EQ(run_report(run), run_report(run));
}

TEST_F(RunReport, EscapesNamesOfStrangers) {
  const std::string hostile = "<img src=x onerror=alert(1)>\"'&";
  RunFolder folder = RunFolder::create(folder_, "x");
  write_text(folder.path() / "experiment.toml", "# </pre><script>alert(2)</script>\n");
  {
    RunLog log(folder);
    log.event("start", {{"name", hostile}});
    for (int step = 1; step < 4; ++step) log.scalars(step, 1, {{hostile, 1.0 * step}, {hostile + "/" + hostile, 2.0}});
    log.memory(1, {{"held_bytes", 5}, {hostile + "_bytes", 5}}, "");
    log.event("out_of_memory", {{hostile, hostile}});
    write_summary(folder, {{"state", hostile},
                           {hostile, hostile},
                           {"metrics", {{hostile, 1}}},
                           {"data", {{"cache", {{hostile, {{hostile, hostile}}}}}}},
                           {"best", {{"metric", hostile}, {"value", 1}, {"step", 2}}},
                           {"memory", {{"limit_rule", hostile}, {"limit_bytes", 10}}}});
  }
  const std::string html = run_report(folder.path());
  EXPECT_THAT(html, HasSubstr("&lt;img"));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("\"'&")));
}

TEST_F(RunReport, OfACrashTellsWhy) {
  const fs::path run = write_run(folder_, {.state = ""});
  write_text(
      run / postmortem_file,
      R"({"format": 1, "ended": {"kind": "crash", "sentence": "crashed with SIGSEGV", "pid": 7}, "advice": {}})");
  const std::string html = run_report(run);
  EXPECT_THAT(html, HasSubstr("ended badly"));
  EXPECT_THAT(html, HasSubstr("the trainer (process 7) crashed with SIGSEGV"));
  EXPECT_THAT(html, HasSubstr("learning rate"));
}

TEST_F(RunReport, StandsDamagedFiles) {
  const fs::path run = write_run(folder_, {});
  std::ofstream(run / "events.jsonl", std::ios::app) << "{\"kind\": \"scalars\", \"val\n[]\n{\"kind\": 5}\n"
                                                     << R"({"kind": "scalars", "values": [1], "step": "x"})"
                                                     << "\n";
  write_text(run / "memory.jsonl", "{\"time\": 5}\n{\"time\": \"yesterday\", \"held_bytes\": []}\n");
  write_text(run / "summary.json", "{\"memory\": 5, \"best\": [], \"metrics\": null, \"data\": 3}");
  write_text(run / postmortem_file, "{\"format\": 1, \"ended\": 5}");
  EXPECT_THAT(run_report(run), testing::AllOf(HasSubstr("2 lines of the logs are damaged"),
                                              HasSubstr("postmortem.json, which says how, is damaged")));
  // What is copied and shown has to end.
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']') + "}\n";
  std::ofstream(run / "events.jsonl", std::ios::app) << "{\"kind\": " << deep << "{\"kind\": \"deep\", \"x\": " << deep;
  write_text(run / "summary.json", "{\"data\": " + deep);
  EXPECT_THAT(run_report(run), HasSubstr("4 lines of the logs are damaged"));
  for (const char* file : {"events.jsonl", "memory.jsonl", "summary.json", "metrics.csv"}) fs::remove(run / file);
  EXPECT_THAT(run_report(run), HasSubstr("batch_size = 8"));
}

TEST_F(RunReport, IsOfRunFoldersOnly) {
  EXPECT_THROW(run_report(folder_), Error);
  EXPECT_THROW(write_run_report(folder_ / "nothing"), Error);
}

TEST_F(RunReport, LeavesOutTheTimeBetweenTwoLivesOfARun) {
  const fs::path run = write_run(folder_, {.steps = 0});
  write_text(run / "events.jsonl",
             "{\"time\":\"2026-11-21T10:00:00.000Z\",\"kind\":\"start\",\"name\":\"x\"}\n"
             "{\"time\":\"2026-11-21T10:00:10.000Z\",\"kind\":\"checkpoint\"}\n"
             "{\"time\":\"2026-11-21T12:00:00.000Z\",\"kind\":\"resume\"}\n");
  write_text(run / "memory.jsonl",
             "{\"time\":\"2026-11-21T10:00:05.000Z\",\"held_bytes\":8,\"other_bytes\":8}\n"
             "{\"time\":\"2026-11-21T12:00:20.000Z\",\"held_bytes\":9,\"other_bytes\":9}\n");
  const auto reading = read_run(run);
  const auto& moments = reading.memory.moments.entries();
  ASSERT_EQ(moments.size(), 2u);
  EXPECT_DOUBLE_EQ(moments[0].x, 5);
  EXPECT_DOUBLE_EQ(moments[1].x, 30);
}

TEST_F(RunReport, OfALongRunIsSmall) {
  const fs::path run = write_run(folder_, {.steps = 0});
  std::ofstream events(run / "events.jsonl", std::ios::app);
  for (int step = 0; step < 50'000; ++step)
    events << R"({"kind":"scalars","step":)" << step << R"(,"values":{"train/loss_step":)" << step % 97 << "}}\n";
  events.close();
  write_run_report(run);
  EXPECT_LT(fs::file_size(run / report_file), 100'000u);
}

}  // namespace
}  // namespace headroom
