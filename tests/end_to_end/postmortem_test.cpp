// Five deaths of real runs, and what is said of each: how it ended, where it was, what it held.
#include <csignal>
#include <fstream>
#include <unistd.h>

#include "memory/black_box.hpp"
#include "memory/cgroups.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

#define EXPECT_SAYS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

// Ten million parameters.
const std::vector<std::string> kLarge = {"model.options.hidden=2000000", "data.num_workers=1", "memory.limit=off",
                                         "train.batch_size=1", "checkpoint.every_steps=1"};

class Postmortem : public TrialRun {
 protected:
  fs::path waiting() const { return folder_ / "waiting"; }
  // A run that stands still in training step `step`.
  std::unique_ptr<Program> start_paused(int step, const std::vector<std::string>& set) const {
    const std::string pause = "HEADROOM_TEST_PAUSE=train:" + std::to_string(step) + ":" + waiting().string();
    auto program = std::make_unique<Program>(run_words(set), here({pause}));
    EXPECT_TRUE(eventually([&] { return fs::exists(waiting()) || program->ended(); }));
    EXPECT_TRUE(fs::exists(waiting())) << "it never came to step " << step;
    return program;
  }
  // Until the black box has a record of `step` standing still.
  BlackBoxReading black_box_of(int64_t step) const {
    std::optional<BlackBoxReading> box;
    EXPECT_TRUE(eventually([&] {
      box = read_black_box(run_folder() / black_box_file);
      return box && !box->records.empty() && box->records.back().step == step &&
             box->records.back().phase == Phase::forward;
    }));
    return box.value_or(BlackBoxReading());
  }
  std::string text() const { return headroom({"postmortem", run_folder().string()}).out; }
  Json json() const { return Json::parse(headroom({"postmortem", run_folder().string(), "--json"}).out); }

  // What is said of the owners is what they held, largest first, and adds up.
  void expect_owners() const {
    const Json held = json().at("held");
    const Json& owners = held.at("owners");
    ASSERT_GE(held.at("largest").size(), 3u) << held;
    int64_t before = INT64_MAX, sum = 0;
    for (const Json& owner : held["largest"]) {
      const int64_t bytes = owners.at(owner.get<std::string>());
      EXPECT_LE(bytes, before) << held;
      before = bytes;
    }
    for (const auto& [owner, bytes] : owners.items()) sum += bytes.get<int64_t>();
    EXPECT_NEAR(static_cast<double>(sum), held.at("bytes").get<double>(), 1 << 20) << held;
    EXPECT_SAYS(text(), "; largest: " + held["largest"][0].get<std::string>() + " ");
    EXPECT_SAYS(text(), ", " + held["largest"][1].get<std::string>() + " ");
  }
  // Of kLarge: weights, as many gradients, two moments and an average; the allocator rounds sizes up.
  void expect_large_owners() const {
    expect_owners();
    const Json owners = json().at("held").at("owners");
    for (const auto& [owner, megabytes] :
         {std::pair{"parameters", 40.0}, std::pair{"gradients", 40.0}, std::pair{"optimizer", 120.0}})
      EXPECT_NEAR(owners.at(owner).get<double>() / 1e6, 1.1 * megabytes, 0.15 * megabytes) << owner;
  }
  void expect_place(const std::string& phase, int64_t step, const std::string& call) const {
    const Json where = json().at("where");
    EXPECT_EQ(where.at("phase"), phase);
    EXPECT_EQ(where.at("step"), step);
    std::string words = "it was in phase '" + phase + "' of step " + std::to_string(step) + ", epoch 1, micro-batch 1";
    if (call.empty()) {
      EXPECT_FALSE(where.contains("plugin_call")) << where;
    } else {
      EXPECT_EQ(where.at("plugin_call"), call);
      words += ", inside the plugin call '" + call + "'";
    }
    EXPECT_SAYS(text(), words);
  }
};

TEST_F(Postmortem, OfAKillFromOutside) {
  const auto program = start_paused(3, kLarge);
  const BlackBoxReading box = black_box_of(3);
  kill(static_cast<pid_t>(box.pid), SIGKILL);
  const Finished finished = program->wait();
  EXPECT_EQ(finished.exit_code, 137);
  EXPECT_SAYS(finished.err,
              "[postmortem] the trainer (process " + std::to_string(box.pid) + ") was killed with SIGKILL");
  EXPECT_SAYS(text(), "not by the kernel for lack of memory");
  EXPECT_SAYS(text(), "find out who sent it");
  EXPECT_SAYS(read_text(run_folder() / "report.html"), "was killed with SIGKILL");
  EXPECT_SAYS(text(), "go on with: headroom run --resume");
  EXPECT_EQ(json().at("ended").at("kind"), "killed");
  EXPECT_EQ(json().at("ended").at("signal"), "SIGKILL");
  EXPECT_EQ(json().at("ended").at("exit_code"), 137);
  EXPECT_FALSE(json().at("ended").contains("oom_kill"));
  EXPECT_EQ(json().at("advice").at("has_checkpoint"), true);
  expect_place("forward", 3, "trial_model step");
  expect_large_owners();
}

// The kernel's own OOM killer, in a cgroup that the supervisor shares, as under a batch system.
class KernelPostmortem : public Postmortem {
 protected:
  static constexpr int64_t limit_bytes = int64_t{768} << 20;

  void SetUp() override {
    Postmortem::SetUp();
    const auto folders = memory_cgroups();
    if (folders.empty()) GTEST_SKIP() << "no memory cgroup is mounted here";
    parent_ = folders.front().folder;
    cgroup_ = parent_ / ("headroom-postmortem-" + std::to_string(getpid()));
    std::error_code error;
    if (!fs::create_directory(cgroup_, error)) {
      cgroup_.clear();
      GTEST_SKIP() << "no cgroup can be made in " << parent_ << ": " << error.message();
    }
    const bool v1 = fs::exists(parent_ / "memory.limit_in_bytes");
    if (!write(cgroup_ / (v1 ? "memory.limit_in_bytes" : "memory.max"), std::to_string(limit_bytes)))
      GTEST_SKIP() << "no memory limit can be set in " << cgroup_;
    write(cgroup_ / "memory.swap.max", "0");
  }
  void TearDown() override {
    if (!cgroup_.empty()) eventually([&] { return rmdir(cgroup_.c_str()) == 0; });
    Postmortem::TearDown();
  }
  static bool write(const fs::path& path, const std::string& text) {
    std::ofstream stream(path);
    stream << text << std::flush;
    return stream.good();
  }
  // This process goes in, so that what it starts is in there, and comes out again.
  bool enter() const { return write(cgroup_ / "cgroup.procs", std::to_string(getpid())); }
  void leave() const { EXPECT_TRUE(write(parent_ / "cgroup.procs", std::to_string(getpid()))); }

  fs::path parent_, cgroup_;
};

TEST_F(KernelPostmortem, OfAKillForLackOfMemory) {
  if (!enter()) GTEST_SKIP() << "a process cannot be moved into " << cgroup_;
  Program program(run_words({"memory.limit=off", "train.batch_size=1", "checkpoint.every_steps=1"}),
                  here({"HEADROOM_TEST_FAULT=hoard:3"}));
  leave();
  const Finished finished = program.wait();
  EXPECT_EQ(finished.exit_code, 137) << finished.err;
  EXPECT_SAYS(finished.err,
              "was killed by the kernel's OOM killer: cgroup " + cgroup_.string() + " was at its limit of 768.0 MiB");
  EXPECT_SAYS(text(), "was killed by the kernel's OOM killer");
  EXPECT_SAYS(text(), "growing: activations, by ");
  EXPECT_SAYS(text(), "set memory.limit = \"auto\", which stays below the kernel's limit");
  const Json ended = json().at("ended");
  EXPECT_EQ(ended.at("kind"), "oom_kill");
  EXPECT_EQ(ended.at("oom_kill").at("limit_bytes"), limit_bytes);
  EXPECT_EQ(ended.at("oom_kill").at("cgroup"), cgroup_.string());
  EXPECT_EQ(ended.at("oom_kill").at("certain"), true);
  EXPECT_EQ(json().at("growing").at("owner"), "activations");
  expect_place("forward", 3, "trial_model step");
  expect_owners();
  EXPECT_EQ(json().at("held").at("largest").at(0), "activations");
}

TEST_F(Postmortem, OfASegfaultInAPlugin) {
  const char* options = std::getenv("ASAN_OPTIONS");  // its own handler would make an exit code of the crash
  const std::string asan = std::string("ASAN_OPTIONS=") + (options ? std::string(options) + ":" : "") +
                           "handle_segv=0:allow_user_segv_handler=1";
  const Finished finished =
      headroom_program(run_words({"train.batch_size=1"}), here({"HEADROOM_TEST_FAULT=crash:3", asan}));
  EXPECT_EQ(finished.exit_code, 70) << finished.err;
  EXPECT_SAYS(finished.err, ") crashed with SIGSEGV (Segmentation fault)");
  EXPECT_SAYS(text(), "run `headroom plugins check` on its plugins");
  EXPECT_SAYS(text(), "(no checkpoint yet: it starts from the beginning)");
  EXPECT_EQ(json().at("ended").at("kind"), "crash");
  EXPECT_EQ(json().at("ended").at("signal"), "SIGSEGV");
  expect_place("forward", 3, "trial_model step");
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_SAYS(text(), "; it crashed in ");
  const fs::path site = json().at("where").at("crash_site").get<std::string>();
  EXPECT_NE(site.filename().string().find("trial_model"), std::string::npos) << site;
#endif
}

// Asked to stop: a checkpoint and a clean end, which is no death; who asked is told all the same.
TEST_F(Postmortem, OfATermination) {
  const auto program = start_paused(3, kLarge);
  black_box_of(3);
  program->signal(SIGTERM);
  fs::remove(waiting());
  const Finished finished = program->wait();
  EXPECT_EQ(finished.exit_code, 75) << finished.err;
  EXPECT_EQ(finished.err.find("[postmortem]"), std::string::npos) << "the trainer has said it: " << finished.err;
  EXPECT_SAYS(finished.out, "resumable: ");
  EXPECT_SAYS(finished.out, "go on with: headroom run --resume ");
  EXPECT_SAYS(text(), "stopped on request, with exit code 75, ");
  EXPECT_SAYS(text(), "it had been sent SIGTERM by process " + std::to_string(getpid()));
  EXPECT_SAYS(text(), "go on with: headroom run --resume");
  EXPECT_EQ(text().find("no checkpoint yet"), std::string::npos) << text();
  EXPECT_EQ(json().at("ended").at("kind"), "stopped");
  EXPECT_EQ(json().at("ended").at("forwarded").at("signal"), "SIGTERM");
  EXPECT_EQ(json().at("advice").at("has_checkpoint"), true);
  EXPECT_EQ(json().at("where").at("phase"), "finished");
  EXPECT_EQ(json().at("where").at("step"), 4) << "the step under way was taken";
  EXPECT_FALSE(json().at("where").contains("plugin_call"));
  EXPECT_TRUE(fs::exists(run_folder() / "checkpoints/step-00000004/model.safetensors"));
  expect_large_owners();
}

// The trainer is a grandchild of `headroom watch`: both supervisors tell of it, each what it knows.
TEST_F(Postmortem, OfAChildOfAWatchedCommand) {
  std::vector<std::string> words = {
      "watch", "--interval", "0.02", "--out", "o.json", "--svg", "o.svg", "--", HEADROOM_BUILD_DIR "/bin/headroom"};
  for (const std::string& word : run_words(kLarge)) words.push_back(word);
  Program program(words, here({"HEADROOM_TEST_PAUSE=train:3:" + waiting().string()}));
  ASSERT_TRUE(eventually([&] { return fs::exists(waiting()) || program.ended(); }));
  const BlackBoxReading box = black_box_of(3);
  kill(static_cast<pid_t>(box.pid), SIGKILL);
  const Finished finished = program.wait();
  EXPECT_EQ(finished.exit_code, 137) << finished.err;
  const std::string pid = std::to_string(box.pid);
  EXPECT_SAYS(finished.err, "[postmortem] the trainer (process " + pid + ") was killed with SIGKILL");
  EXPECT_SAYS(finished.err, "headroom-train (process " + pid + "), a child of the command, was killed with SIGKILL");
  EXPECT_SAYS(finished.err, "[watch] the command ended with exit code 137");
  EXPECT_SAYS(finished.err, "[watch] grew most in the ");
  EXPECT_SAYS(finished.err, " before: headroom-train (process " + pid + "), from ");

  const Json watched = read_json(folder_ / "o.json");
  ASSERT_EQ(watched.at("deaths").size(), 1u);
  const Json& death = watched["deaths"][0];
  EXPECT_EQ(death.at("pid"), box.pid);
  EXPECT_EQ(death.at("signal"), "SIGKILL");
  EXPECT_EQ(death.at("is_command"), false);
  EXPECT_FALSE(death.contains("oom_kill"));
  EXPECT_EQ(death.at("grew_most").at("pid"), box.pid);
  EXPECT_EQ(watched.at("processes").at(0).at("pid"), box.pid) << "the largest first";
  EXPECT_GE(watched["processes"][0].at("peak_bytes"), box.records.back().held_bytes / 2);
  const std::string svg = read_text(folder_ / "o.svg");
  EXPECT_SAYS(svg, "SIGKILL: headroom-train (process " + pid + ")</text>");

  EXPECT_EQ(json().at("ended").at("kind"), "killed");
  expect_place("forward", 3, "trial_model step");
  expect_large_owners();
}

}  // namespace
}  // namespace headroom
