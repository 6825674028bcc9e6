// `headroom plan`, and runs that plan first.
#include <optional>
#include <stdlib.h>
#include <unistd.h>

#include "memory/reservations.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class PlanRun : public TrialRun {
 protected:
  Finished plan(std::vector<std::string> words) const {
    words.insert(words.begin(), {"plan", "trial.toml", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
    // Probes of other cases, and of earlier runs of this one, are not to be found.
    return headroom_program(std::move(words), here(cache()));
  }
  Json plan_json(std::vector<std::string> words = {}) const {
    words.emplace_back("--json");
    const Finished finished = plan(std::move(words));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return Json::parse(finished.out, nullptr, /*allow_exceptions=*/false);
  }
  Finished planned_run(const std::vector<std::string>& set, const std::string& out = "runs") const {
    std::vector<std::string> words = run_words(set, out);
    std::erase(words, "--no-plan");
    return headroom_program(words, here(cache()));
  }
  std::vector<std::string> cache() const { return {"XDG_CACHE_HOME=" + (folder_ / "cache").string()}; }
  size_t kept_probes() const {
    std::error_code error;
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_ / "cache/headroom/plans", error), {}));
  }
};

TEST_F(PlanRun, TellsTheWholeTableAsJson) {
  const Json plan = plan_json();
  EXPECT_GT(plan.at("predicted_peak_bytes"), 0);
  EXPECT_TRUE(plan.at("fits"));
  EXPECT_EQ(plan.at("rows").size(), 4u + 3u + 2u + 1u);
  EXPECT_EQ(plan.at("as_written").at("micro_batch"), 4);
  EXPECT_EQ(plan.at("recommendation").at("batch_size"), 4);
  EXPECT_GT(plan.at("limit").at("bytes"), plan.at("predicted_peak_bytes"));
  for (const Json& row : plan.at("rows")) {
    EXPECT_EQ(row.at("batch_size").get<int64_t>() * row.at("gradient_accumulation_steps").get<int64_t>(), 8);
    EXPECT_EQ(row.at("phase_bytes").size(), 5u);
  }
  const Finished people = plan_json().is_discarded() ? Finished{} : this->plan({});
  EXPECT_NE(people.out.find("Nothing to change"), std::string::npos) << people.out << people.err;
}

// Which plugins a plan is of goes into the probe's key.
TEST_F(PlanRun, PluginsMayLieInAFolderWithAnyName) {
  const fs::path plugins = folder_ / "plugins-\xE9";
  fs::create_directories(plugins);
  for (const char* name : {"trial_model.so", "trial_source.so"})
    fs::copy_file(fs::path(HEADROOM_TEST_PLUGIN_DIR) / name, plugins / name);
  const Finished finished = headroom_program({"plan", "trial.toml", "--plugin-dir", plugins.string()}, here(cache()));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

TEST_F(PlanRun, ALimitNothingFitsIsExitFiveWithTheArithmetic) {
  const Finished finished = plan({"--limit", "20 MiB"});
  EXPECT_EQ(finished.exit_code, 5);
  EXPECT_NE(finished.out.find("does not fit"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("between windows"), std::string::npos) << finished.out;
  const Finished json = plan({"--limit", "20 MiB", "--json"});
  EXPECT_EQ(json.exit_code, 5);
  EXPECT_TRUE(Json::parse(json.out).at("recommendation").is_null());
  EXPECT_EQ(plan({"--limit", "a lot"}).exit_code, 2);
}

TEST_F(PlanRun, AProbeIsKeptUntilSomethingItDependsOnChanges) {
  EXPECT_FALSE(plan_json().at("cached"));
  EXPECT_TRUE(plan_json().at("cached"));
  EXPECT_TRUE(plan_json({"--set", "train.epochs=9", "--set", "train.batch_size=2", "--set",
                         "train.gradient_accumulation_steps=4", "--limit", "1 GiB"})
                  .at("cached"))
      << "the length of a run, its batch and its limit are arithmetic";
  EXPECT_EQ(kept_probes(), 1u);
  for (const char* change : {"model.options.hidden=9", "train.precision=fp64", "data.num_workers=1",
                             "experiment.threads=2", "train.optimizer.name=sgd"}) {
    EXPECT_FALSE(plan_json({"--set", change}).at("cached")) << change;
  }
  EXPECT_EQ(kept_probes(), 6u);
}

TEST_F(PlanRun, ARunPlansFirstAndToldItsPrediction) {
  const Finished finished = planned_run({"train.epochs=1"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("plan: a peak of"), std::string::npos) << finished.err;
  const Json memory = read_json(run_folder() / "summary.json").at("memory");
  EXPECT_GT(memory.at("predicted_peak_bytes"), 0);
  EXPECT_GE(memory.at("predicted_peak_bytes").get<double>(), 0.98 * memory.at("measured_peak_bytes").get<double>());
  EXPECT_EQ(kept_probes(), 1u);
  const Finished again = planned_run({"train.epochs=1"}, "again");
  EXPECT_NE(again.err.find("probed before"), std::string::npos) << again.err;
  const Finished without = run({"train.epochs=1"}, "without");
  EXPECT_EQ(without.err.find("plan:"), std::string::npos) << without.err;
  EXPECT_FALSE(read_json(run_folder("without") / "summary.json").at("memory").contains("predicted_peak_bytes"));
}

// A probe has to have memory before it can say how much a run needs.
TEST_F(PlanRun, ARunThatMayWaitForMemoryWaitsWithItsProbe) {
  const std::string reservations = (folder_ / "reservations").string();
  setenv("HEADROOM_RESERVATIONS", reservations.c_str(), 1);
  std::optional<Reservation> all = Reservation::claim("others", int64_t{1} << 45);
  std::vector<std::string> words = run_words({"train.epochs=1", "memory.wait=4 min"}), places = cache();
  std::erase(words, "--no-plan");
  places.push_back("HEADROOM_RESERVATIONS=" + reservations);
  Program program(words, here(places));
  EXPECT_TRUE(eventually([] { return !other_runs().empty(); })) << "it waits for them";
  all.reset();
  const Finished finished = program.wait();
  unsetenv("HEADROOM_RESERVATIONS");
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("[plan] waiting for memory: needs "), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find("plan: a peak of"), std::string::npos) << finished.err;
  EXPECT_EQ(finished.err.find("no plan"), std::string::npos) << finished.err;
}

// How its three large tensors share free memory differs with their size: that much a plan may err.
TEST_F(PlanRun, ActivationsArePredictedForEveryMicroBatch) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps what was freed";
#endif
  write_hungry("trial.toml");
  for (const std::string micro_batch : {"1", "4", "16", "32"}) {
    auto words = run_words({"model.options.activation_mib=2", "data.options.samples=64", "train.batch_size=32",
                            "train.epochs=2", "train.micro_batch=" + micro_batch},
                           micro_batch);
    std::erase(words, "--no-plan");
    const Finished finished = headroom_program(words, here(cache()));
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    const Json memory = read_json(run_folder(micro_batch) / "summary.json").at("memory");
    const auto predicted = memory.at("predicted_peak_bytes").get<double>();
    const auto measured = memory.at("measured_peak_bytes").get<double>();
    EXPECT_GE(predicted, 0.9 * measured) << "micro-batch " << micro_batch;
    EXPECT_LE(predicted, 1.4 * measured) << "micro-batch " << micro_batch;
  }
}

TEST_F(PlanRun, ARunThatCannotFitEndsBeforeItBegins) {
  const Finished finished = planned_run({"memory.limit=30 MiB"});
  EXPECT_EQ(finished.exit_code, 5);
  EXPECT_NE(finished.err.find("[plan]"), std::string::npos) << finished.err;
  EXPECT_FALSE(fs::exists(folder_ / "runs/trial")) << "a run that cannot begin leaves no folder";
}

TEST_F(PlanRun, AProbeThatFailsDoesNotStopTheRun) {
  // A cache that cannot be written changes nothing; a probe that cannot make its folder has no answer.
  std::vector<std::string> words = run_words({"train.epochs=1"});
  std::erase(words, "--no-plan");
  auto environment = cache();
  environment.push_back("TMPDIR=" + (folder_ / "missing").string());
  const Finished finished = headroom_program(words, here(environment));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("no plan"), std::string::npos) << finished.err;
}

TEST_F(PlanRun, MetricsInFullThatCannotFitAreRefused) {
  const std::vector<std::string> words = {"--set", "metrics.mode=full",
                                          "--set", "data.options.samples=40000000",
                                          "--set", "data.options.group_size=4000000"};
  std::vector<std::string> limited = words;
  limited.insert(limited.end(), {"--limit", "1 GiB"});
  const Finished finished = plan(limited);
  EXPECT_EQ(finished.exit_code, 5) << finished.err;
  EXPECT_NE(finished.out.find(" samples x "), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("metrics.mode = \"online\""), std::string::npos) << finished.out;
}

}  // namespace
}  // namespace headroom
