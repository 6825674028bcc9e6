// Sweeps as jobs, and a run as tasks, of a real Slurm: slurmctld and two slurmd of this machine (tests/tools/slurm).
// Skipped where those are not installed.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <memory>

#include "../runner/shell.hpp"
#include "sweep_outcome.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class OnSlurm : public TrialRun {
 protected:
  void SetUp() override {
    TrialRun::SetUp();
    const std::string missing = shell("'" + tool_ + "' missing").out;
    if (!missing.empty())
      GTEST_SKIP() << "no " << missing.substr(0, missing.find('\n'))
                   << ": apt-get install --no-install-recommends slurmctld slurmd slurm-client munge";
    cluster_ = folder_ / "slurm";
    fs::create_directory(cluster_);
    const Answer started = shell("'" + tool_ + "' start '" + cluster_.string() + "' 2>&1");
    ASSERT_EQ(started.exit_code, 0) << started.out;
  }
  void TearDown() override {
    if (!cluster_.empty()) shell("'" + tool_ + "' stop '" + cluster_.string() + "'");
    TrialRun::TearDown();
  }

  void add_sweep(const std::string& lines) const {
    write_text(folder_ / "trial.toml",
               read_text(folder_ / "trial.toml") + "\n[checkpoint]\nevery_steps = 20\n\n[sweep]\n" + lines);
  }
  StartPlace beside_slurm() const { return here({"SLURM_CONF=" + (cluster_ / "slurm.conf").string()}); }
  std::string slurm(const std::string& command) const {
    return shell("SLURM_CONF='" + (cluster_ / "slurm.conf").string() + "' " + command + " 2>&1").out;
  }
  static std::vector<std::string> words(const std::string& out, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"sweep", "trial.toml", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR, "--out", out};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  fs::path trial(const std::string& out, const std::string& id) const { return run_folder(out) / "trials" / id; }
  // The job of a trial by now; 0: none.
  int64_t job_of(const fs::path& trial) const {
    return fs::exists(trial / "trial.json") ? read_json(trial / "trial.json").value("slurm_job", int64_t{0}) : 0;
  }
  bool has_sweep(const std::string& out) const {
    const fs::path runs = folder_ / out / "trial";
    return fs::exists(runs) && std::ranges::any_of(fs::directory_iterator(runs), [](const auto& run) {
             return fs::exists(run.path() / "sweep.json");
           });
  }
  Json outcome(const std::string& out) const { return sweep_outcome(run_folder(out)); }

  const std::string tool_ = std::string(HEADROOM_SOURCE_DIR) + "/tests/tools/slurm";
  fs::path cluster_;
};

TEST_F(OnSlurm, ComesToTheTableOfALocalOne) {
  // Sixteen, one of which takes long enough to be sent back into the queue.
  add_sweep(
      "\"experiment.seed\" = { from = 1, to = 15, step = 1 }\n\"train.epochs\" = [3, 100]\n"
      "constraint = \"train.epochs == 3 or experiment.seed == 1\"\n");
  const Finished local = headroom(words("local", {"--jobs", "2"}));
  ASSERT_EQ(local.exit_code, 0) << local.err;
  ASSERT_EQ(outcome("local").size(), 16u);

  auto sweep = std::make_unique<Program>(words("jobs", {"--on", "slurm", "--", "--time=1:00:00"}), beside_slurm());
  ASSERT_TRUE(eventually([&] { return has_sweep("jobs") || sweep->ended(); }));
  const fs::path longest = trial("jobs", "002_seed=1_epochs=100");
  const auto has_saved = [&] {
    return !shell("ls -d '" + longest.string() + "'/trial/*/checkpoints/last 2>/dev/null").out.empty();
  };
  ASSERT_TRUE(eventually([&] { return has_saved() || sweep->ended(); }));
  ASSERT_FALSE(sweep->ended()) << sweep->wait().err;
  const int64_t job = job_of(longest);
  ASSERT_GT(job, 0);
  const int64_t limit = read_json(longest / "trial.json").at("limit_bytes");
  const std::string id = std::to_string(job), mib = std::to_string((limit + limit / 4 + (257 << 20) - 1) >> 20);
  EXPECT_NE(slurm("scontrol show job " + id).find("mem=" + mib + "M"), std::string::npos)
      << limit << "\n"
      << slurm("scontrol show job " + id);

  slurm("scontrol update NodeName=n2 State=DRAIN Reason=test");
  EXPECT_EQ(slurm("scontrol requeue " + id), "");
  sweep->signal(SIGKILL);
  sweep->wait();
  const Finished last = headroom_program({"sweep", "--resume", run_folder("jobs").string()}, beside_slurm());
  ASSERT_EQ(last.exit_code, 0) << last.err << slurm("squeue -t all; sinfo -N -l");
  EXPECT_EQ(outcome("jobs"), outcome("local"));

  EXPECT_NE(slurm("scontrol show job " + id).find("Restarts=1"), std::string::npos) << slurm("scontrol show job " + id);
  const std::string log = read_text(longest / "log.txt");
  EXPECT_EQ(count_of(log, "Z headroom run --resume "), 1u) << log;
  EXPECT_EQ(slurm("squeue --noheader"), "") << "a job is left";
}

// The names of this cluster's machines have no addresses.
TEST_F(OnSlurm, ARunThatSrunStartsAsTwoTasksIsThatOfOne) {
  const std::vector<std::string> set = {"train.precision=fp64", "model.options.remember=false",
                                        "model.options.count_calls=false"};
  ASSERT_EQ(run(set, "alone").exit_code, 0);
  std::string words = "cd '" + folder_.string() + "' && MASTER_ADDR=127.0.0.1 SLURM_CONF='" +
                      (cluster_ / "slurm.conf").string() +
                      "' timeout 120 srun --ntasks 2 '" HEADROOM_BUILD_DIR "/bin/headroom'";
  for (const std::string& word : run_words(set, "both")) words += " '" + word + "'";
  const Answer both = shell(words + " 2>&1");
  ASSERT_EQ(both.exit_code, 0) << both.out;
  EXPECT_EQ(read_json(run_folder("both") / "checkpoints/last/checkpoint.json").at("surroundings").at("ranks"), 2);
  const Json expected = read_json(run_folder("alone") / "summary.json"),
             found = read_json(run_folder("both") / "summary.json");
  EXPECT_EQ(found.at("steps"), expected.at("steps"));
  for (const auto& [name, value] : expected.at("metrics").items())
    EXPECT_NEAR(found.at("metrics").at(name), value, 1e-8 * std::abs(value.get<double>())) << name;
}

TEST_F(OnSlurm, WhatASignalEndsLeavesItsJobs) {
  add_sweep("\"experiment.seed\" = [1, 2]\n");
  // They wait until somebody releases them.
  Program sweep(words("jobs", {"--no-plan", "--on", "slurm", "--", "--hold", "--mem=1G"}), beside_slurm());
  ASSERT_TRUE(eventually([&] { return count_of(slurm("squeue --noheader"), "\n") == 2 || sweep.ended(); }));
  ASSERT_TRUE(eventually([&] { return job_of(trial("jobs", "002_seed=2")) > 0; }));
  sweep.signal(SIGTERM);
  const Finished stopped = sweep.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_NE(stopped.err.find("its jobs go on in Slurm"), std::string::npos) << stopped.err;
  EXPECT_EQ(count_of(slurm("squeue --noheader"), "\n"), 2u);
  // As if the sweep had died before it wrote the id down.
  const fs::path record = trial("jobs", "001_seed=1") / "trial.json";
  const int64_t job = job_of(record.parent_path());
  fs::remove(record);
  // And as if somebody had made a job that no trial needs.
  const std::string stray =
      slurm("sbatch --parsable --hold --mem=1M --job-name=headroom-" + run_folder("jobs").filename().string() +
            " --comment=003_seed=3 --output=/dev/null --wrap true");
  slurm("scontrol release " + std::to_string(job) + " " + std::to_string(job_of(trial("jobs", "002_seed=2"))));
  const Finished finished = headroom_program({"sweep", "--resume", run_folder("jobs").string()}, beside_slurm());
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("001_seed=1: job " + std::to_string(job) + " was found in Slurm"), std::string::npos)
      << finished.err;
  EXPECT_EQ(read_json(run_folder("jobs") / "results.json").at("counts"), Json({{"finished", 2}})) << finished.out;
  EXPECT_NE(slurm("scontrol show job " + stray).find("JobState=CANCELLED"), std::string::npos) << finished.err;
  EXPECT_EQ(count_of(slurm("squeue --noheader --states=all"), "\n"), 3u) << "no trial was submitted twice";
}

TEST_F(OnSlurm, HalvingPromotesAsItDoesHere) {
  add_sweep(
      "strategy = \"asha\"\nreduction = 2\n\"experiment.seed\" = [1, 2, 3]\n\"train.optimizer.lr\" = [0.5, 0.0001]\n");
  ASSERT_EQ(headroom(words("local", {"--jobs", "2"})).exit_code, 0);
  const Finished jobs = headroom_program(words("jobs", {"--on", "slurm"}), beside_slurm());
  ASSERT_EQ(jobs.exit_code, 0) << jobs.err;
  EXPECT_EQ(outcome("jobs"), outcome("local"));
  EXPECT_EQ(slurm("squeue --noheader"), "");
}

// Slurm counts the pages of libraries, too, which memory.limit does not.
TEST_F(OnSlurm, AJobThatSlurmKillsRanOutOfMemory) {
  add_sweep("\"experiment.seed\" = [1]\n");
  const Finished killed = headroom_program(words("jobs", {"--no-plan", "--set", "train.epochs=10000", "--set",
                                                          "memory.limit=off", "--on", "slurm", "--", "--mem=120M"}),
                                           beside_slurm());
  ASSERT_EQ(killed.exit_code, 0) << killed.err;
  const Json trial = read_json(run_folder("jobs") / "results.json").at("trials").at(0);
  EXPECT_EQ(trial.at("state"), "failed");
  EXPECT_EQ(trial.at("retry").at("micro_batch"), 2);
  EXPECT_NE(trial.at("why").get<std::string>().find("Slurm killed its job for holding more than --mem: slurmstepd"),
            std::string::npos)
      << trial.at("why");
}

TEST_F(OnSlurm, ARefusalIsInSlurmsWords) {
  add_sweep("\"experiment.seed\" = [1, 2, 3, 4]\n");
  const Finished refused =
      headroom_program(words("jobs", {"--no-plan", "--on", "slurm", "--", "--partition=nope"}), beside_slurm());
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("Slurm refuses its job: sbatch: error: Batch job submission failed: Invalid partition"),
            std::string::npos)
      << refused.err;
}

}  // namespace
}  // namespace headroom
