// Post-mortems of a stand-in for the trainer: what the supervisor writes and says, and what a folder tells without it.
#include "record/postmortem.hpp"

#include <sys/file.h>

#include "../memory/stand_in/stand_in.hpp"
#include "memory/black_box.hpp"
#include "record/checkpoint.hpp"
#include "record/run_folder.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t mib = 1 << 20;

void write_text(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

class PostmortemTest : public WithFolder {
 protected:
  void SetUp() override {
    WithFolder::SetUp();
    write_text(folder_ / "experiment.toml", "");
  }
  // What `headroom run` would do with the stand-in; its stderr.
  std::string run(const std::string& how, int expected_exit_code) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(conclude(supervise(HEADROOM_STAND_IN, {folder_.string(), how})), expected_exit_code);
    return testing::internal::GetCapturedStderr();
  }
  Json written() const { return read_json_file(folder_ / "postmortem.json"); }
  // A summary written so many milliseconds from now.
  void summarise(Json summary, int64_t from_now_ms) const {
    summary["time"] = time_of(now_ms() + from_now_ms);
    write_text(folder_ / "summary.json", summary.dump());
  }
  std::string lines() const {
    std::string text;
    for (const std::string& line : read_postmortem(folder_).lines()) text += line + "\n";
    return text;
  }
};

size_t lines_in(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

#define EXPECT_SAYS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

TEST_F(PostmortemTest, OfAKill) {
  const pid_t killer = send_when_there("ready", SIGKILL);
  const std::string said = run("wait", 137);
  waitpid(killer, nullptr, 0);
  EXPECT_EQ(lines_in(said), 5u) << said;
  EXPECT_SAYS(said, ") was killed with SIGKILL, not by the kernel for lack of memory, ");
  EXPECT_SAYS(said, "it was in phase 'backward' of step 412, epoch 3, micro-batch 8");
  EXPECT_SAYS(said, "it held 244.0 MiB of a memory.limit of 300.0 MiB, with room for 56.0 MiB more, ");
  EXPECT_SAYS(said, "largest: activations 164.0 MiB, optimizer 50.0 MiB, other 30.0 MiB");
  EXPECT_SAYS(said, "growing: activations, by 64.0 MiB within ");
  EXPECT_SAYS(said, "go on with: headroom run --resume " + folder_.string() + " (no checkpoint yet: it begins anew)");
  EXPECT_SAYS(said, "to hold less: train.micro_batch");

  const Json json = written();
  EXPECT_EQ(json.at("format"), 1);
  EXPECT_EQ(json.at("run"), folder_.string());
  EXPECT_EQ(json.at("source"), "supervisor");
  EXPECT_EQ(json.at("ended").at("kind"), "killed");
  EXPECT_EQ(json.at("ended").at("signal"), "SIGKILL");
  EXPECT_EQ(json.at("ended").at("exit_code"), 137);
  EXPECT_GT(json.at("ended").at("peak_resident_bytes"), 0);
  EXPECT_EQ(json.at("where").at("phase"), "backward");
  EXPECT_EQ(json.at("where").at("step"), 412);
  EXPECT_EQ(json.at("held").at("bytes"), 244 * mib);
  EXPECT_EQ(json.at("held").at("owners").at("activations"), 164 * mib);
  EXPECT_EQ(json.at("held").at("largest").at(0), "activations");
  EXPECT_EQ(json.at("growing").at("owner"), "activations");
  EXPECT_EQ(json.at("growing").at("rise_bytes"), 64 * mib);
  EXPECT_EQ(json.at("advice").at("has_checkpoint"), false);
  EXPECT_EQ(lines() == said, false) << "on stderr each line names its source";
  for (const std::string& line : read_postmortem(folder_).lines()) EXPECT_SAYS(said, "[postmortem] " + line + "\n");
}

TEST_F(PostmortemTest, OfASegfaultInAPlugin) {
  const std::string bytes(8, 'x');
  const std::vector<TensorBytes> tensors = {{"w", {kDLUInt, 8, 1}, {8}, std::as_bytes(std::span(bytes))}};
  Checkpoints(folder_ / "checkpoints").save({.step = 400, .model = tensors, .state = tensors, .json = {}}, false);
  fs::remove(folder_ / "checkpoints" / "last");  // a crash before the link, say
  const std::string said = run("plugin", 70);
  EXPECT_EQ(lines_in(said), 5u) << said;
  EXPECT_SAYS(said, ") crashed with SIGSEGV (Segmentation fault)");
  EXPECT_EQ(said.find("begins anew"), std::string::npos) << said;
  EXPECT_EQ(written().at("ended").at("kind"), "crash");
  EXPECT_EQ(written().at("where").at("plugin_call"), "crashing crash");
  EXPECT_SAYS(said, ", inside the plugin call 'crashing crash'");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they want to see the crash themselves
  EXPECT_SAYS(said, "; it crashed in ");
  EXPECT_SAYS(said, "libcrashing_plugin.so");
  EXPECT_EQ(fs::path(written().at("where").at("crash_site").get<std::string>()).filename(), "libcrashing_plugin.so");
#endif
}

TEST_F(PostmortemTest, OfAnAbort) {
  const std::string said = run("abort", 70);
  EXPECT_SAYS(said, ") crashed with SIGABRT (Aborted)");
  EXPECT_EQ(written().at("ended").at("kind"), "crash");
  EXPECT_FALSE(written().at("where").contains("crash_site"));
  EXPECT_FALSE(written().at("where").contains("plugin_call"));
}

TEST_F(PostmortemTest, OfASignalThatItHandled) {
  const pid_t sender = send_when_there("ready", SIGTERM, getpid());
  const std::string said = run("stop", 75);
  waitpid(sender, nullptr, 0);
  EXPECT_EQ(said, "") << "the trainer has said it";
  EXPECT_EQ(written().at("ended").at("kind"), "stopped");
  EXPECT_EQ(written().at("ended").at("forwarded").at("signal"), "SIGTERM");
  EXPECT_SAYS(lines(), ") stopped as it was asked to, with exit code 75, ");
  EXPECT_SAYS(lines(), "it had been sent SIGTERM by process " + std::to_string(sender));
}

TEST_F(PostmortemTest, OfASignalThatItDidNotHandle) {
  const pid_t sender = send_when_there("ready", SIGTERM);
  const std::string said = run("wait", 75);
  waitpid(sender, nullptr, 0);
  EXPECT_SAYS(said, ") was ended by SIGTERM (Terminated), ");
  EXPECT_EQ(written().at("ended").at("kind"), "signal");
}

TEST_F(PostmortemTest, OfAnEndBeforeThereWasAFolder) {
  const std::string said = run("early", 70);
  EXPECT_EQ(lines_in(said), 3u) << said;
  EXPECT_SAYS(said, ") crashed with SIGABRT (Aborted)");
  EXPECT_FALSE(fs::exists(folder_ / "postmortem.json"));
}

TEST_F(PostmortemTest, OfAnErrorNamesIt) {
  const std::string said = run("5", 5);
  EXPECT_EQ(said, "");
  EXPECT_EQ(written().at("ended").at("kind"), "failed");
  EXPECT_SAYS(lines(), ") ended with exit code 5");
  const Json summary = {{"state", "failed"}, {"error", "[memory] it does not fit"}};
  summarise(summary, -1000);
  run("5", 5);
  EXPECT_FALSE(written().at("ended").contains("error")) << "an earlier life ended with that";
  summarise(summary, 60'000);  // while it runs
  run("5", 5);
  EXPECT_SAYS(lines(), "[memory] it does not fit");
}

TEST_F(PostmortemTest, NoneWhereAllWentWell) {
  EXPECT_EQ(run("0", 0), "");
  EXPECT_FALSE(fs::exists(folder_ / "postmortem.json"));
  write_text(folder_ / "summary.json", R"({"state": "finished", "steps": 45, "epochs": 3})");
  EXPECT_EQ(lines(), "the run ended well: finished after 45 steps, 3 epochs\n");
}

TEST_F(PostmortemTest, IsForgottenWhenTheRunGoesOn) {
  run("abort", 70);
  EXPECT_TRUE(fs::exists(folder_ / "postmortem.json"));
  forget_postmortem(folder_);
  EXPECT_FALSE(fs::exists(folder_ / "postmortem.json"));
  forget_postmortem(folder_);
}

// The supervisor was killed with its trainer: only the black box is left.
TEST_F(PostmortemTest, WithoutASupervisorTheBlackBoxTells) {
  run("abort", 70);
  forget_postmortem(folder_);
  const Json json = read_postmortem(folder_).json;
  EXPECT_EQ(json.at("source"), "black box");
  EXPECT_EQ(json.at("ended").at("kind"), "vanished");
  EXPECT_SAYS(lines(), ") ended together with its supervisor, so nobody saw how");
  EXPECT_SAYS(lines(), "last sign of life 20");
  EXPECT_SAYS(lines(), "it was in phase 'backward' of step 412");
  EXPECT_SAYS(lines(), "growing: activations, by 64.0 MiB");
  EXPECT_SAYS(lines(), "go on with: headroom run --resume");
}

TEST_F(PostmortemTest, AnOldSummaryIsNotThatOfThisLife) {
  summarise({{"state", "resumable"}}, -1000);  // it went on a second later
  run("abort", 70);
  forget_postmortem(folder_);
  EXPECT_EQ(read_postmortem(folder_).json.at("ended").at("kind"), "vanished");
  summarise({{"state", "resumable"}}, 0);
  EXPECT_EQ(read_postmortem(folder_).json.at("ended").at("kind"), "stopped");
}

TEST_F(PostmortemTest, ARunThatRunsIsSeenRunning) {
  BlackBox box(folder_ / black_box_file);
  box.set_position(7, 1);
  box.push({});
  const int lock = open((folder_ / "lock").c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_EQ(read_postmortem(folder_).json.at("ended").at("kind"), "running");
  EXPECT_SAYS(lines(), ") is running");
  EXPECT_SAYS(lines(), "of step 7, epoch 1");
  close(lock);
  EXPECT_EQ(read_postmortem(folder_).json.at("ended").at("kind"), "vanished");
}

TEST_F(PostmortemTest, NothingButAnExperimentIsUnknown) {
  EXPECT_EQ(read_postmortem(folder_).json.at("ended").at("kind"), "unknown");
  write_text(folder_ / "postmortem.json", "{ broken");
  EXPECT_EQ(read_postmortem(folder_).json.at("ended").at("kind"), "unknown");
  EXPECT_THROW(read_postmortem(folder_ / "absent"), Error);
}

TEST_F(PostmortemTest, OneThatIsDamagedIsTold) {
  for (const char* text :
       {R"({"format": 1})", R"({"format": "one"})", R"({"format": 1, "ended": 5, "advice": {}})",
        R"({"format": 1, "ended": {"kind": "crash", "sentence": "crashed", "pid": "x"}, "advice": {}})",
        R"({"format": 1, "ended": {"kind": "crash", "sentence": "crashed"}, "where": {"phase": 1}, "advice": {}})"}) {
    write_text(folder_ / "postmortem.json", text);
    EXPECT_EQ(lines(), "the run has ended, and postmortem.json, which says how, is damaged\n") << text;
    EXPECT_EQ(read_postmortem(folder_).json.at("ended").at("kind"), "unknown");
  }
  fs::remove(folder_ / "postmortem.json");
  for (const char* text : {R"({"state": 5})", R"({"state": "finished", "steps": "many"})",
                           R"({"state": "failed", "error": ["no", "sentence"]})"}) {
    write_text(folder_ / "summary.json", text);
    EXPECT_EQ(lines(), "the run has ended, and summary.json, which says how, is damaged\n") << text;
  }
}

TEST_F(PostmortemTest, OfAnOutOfMemoryKillNamesTheLimit) {
  Ended ended;
  ended.pid = 77;
  ended.end.status = SIGKILL;
  ended.seconds = 130;
  ended.oom_kill = OomKill{.cgroup = "/sys/fs/cgroup/job", .limit_bytes = 256 * mib, .certain = true};
  ended.run_folder = folder_;
  testing::internal::CaptureStderr();
  EXPECT_EQ(conclude(ended), 137);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_SAYS(said,
              "the trainer (process 77) was killed by the kernel's OOM killer: cgroup /sys/fs/cgroup/job was at its "
              "limit of 256.0 MiB, 2 min 10 s after its start");
  EXPECT_SAYS(said, "set memory.limit = \"auto\"");
  EXPECT_EQ(written().at("ended").at("kind"), "oom_kill");
  EXPECT_EQ(written().at("ended").at("oom_kill").at("limit_bytes"), 256 * mib);
}

TEST_F(PostmortemTest, ItsCommandCanBeCopied) {
  const fs::path run = folder_ / "my runs" / "a";
  fs::create_directories(run);
  write_text(run / "experiment.toml", "");
  EXPECT_EQ(read_postmortem(run).json.at("advice").at("resume"), "headroom run --resume '" + run.string() + "'");
}

// A folder's name may be no UTF-8, which JSON has to be: the exit code is the trainer's all the same.
TEST_F(PostmortemTest, OfAFolderWhoseNameIsNoUtf8) {
  Ended ended;
  ended.end.status = 5 << 8;
  ended.run_folder = folder_ / "caf\xe9";
  fs::create_directory(ended.run_folder);
  EXPECT_EQ(conclude(ended), 5);
  const Json json = read_json_file(ended.run_folder / "postmortem.json");
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json.at("run"), (folder_ / "caf\xEF\xBF\xBD").string());
}

}  // namespace
}  // namespace headroom
