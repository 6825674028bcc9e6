// What cannot go well ends in one clear sentence with its exit code, and never in a crash.
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

#include "trial_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class Refusals : public TrialRun {
 protected:
  void expect(const Finished& finished, int exit_code, const std::string& sentence) {
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
    EXPECT_NE(finished.err.find(sentence), std::string::npos) << finished.err;
    EXPECT_EQ(finished.err.find("[bug]"), std::string::npos) << finished.err;
    EXPECT_EQ(finished.err.find("terminate called"), std::string::npos) << finished.err;
    EXPECT_EQ(finished.out, "");
  }
};

TEST_F(Refusals, AFileWhereTheRunsShouldGo) {
  write_text(folder_ / "runs", "in the way");
  expect(run(), 6, "runs");
}

TEST_F(Refusals, AFolderThatCannotBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  fs::create_directory(folder_ / "closed");
  fs::permissions(folder_ / "closed", fs::perms::owner_read | fs::perms::owner_exec);
  expect(run({}, "closed"), 6, "closed");
}

TEST_F(Refusals, AFolderThatTakesNoFiles) { expect(run({}, "/proc/headroom"), 6, "/proc/headroom"); }

// A file beyond the size limit cannot be written: as a full disk, for whoever has none to fill. By default it also
// sends a signal that ends the process.
TEST_F(Refusals, ADiskThatIsFullKeepsTheCheckpointsThereAre) {
  const std::string words =
      " run trial.toml --set train.log_every=1 --set train.epochs=9 --set checkpoint.every_steps=10 "
      "--plugin-dir " HEADROOM_TEST_PLUGIN_DIR;
  const std::string command = "cd " + folder_.string() + " && ulimit -f 40 && " + HEADROOM_BUILD_DIR + "/bin/headroom" +
                              words + " > out 2> err";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 6) << read_text(folder_ / "err");
  EXPECT_NE(read_text(folder_ / "err").find("events.jsonl"), std::string::npos) << read_text(folder_ / "err");
  const Finished resumed =
      headroom({"run", "--resume", run_folder().string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("resumed at step "), std::string::npos) << resumed.err;
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("steps"), 135);
}

TEST_F(Refusals, SyntheticDataThatFindsNoRoom) {
  write_text(folder_ / "emg.toml",
             "experiment.name = \"x\"\nmodel.plugin = \"tds_lstm\"\ndata.source = \"emg_hdf5\"\n"
             "data.options.path = \"made\"\ndata.synth = { sessions = 1, seconds = 2.0 }\n");
  const std::string command = "cd " + folder_.string() + " && ulimit -f 40 && " + HEADROOM_BUILD_DIR +
                              "/bin/headroom data synth emg.toml > out 2> err";
  const int status = std::system(command.c_str());
  const std::string said = read_text(folder_ / "err");
  EXPECT_EQ(WEXITSTATUS(status), 6) << said;
  EXPECT_NE(said.find("[emg_hdf5] cannot write "), std::string::npos) << said;
  EXPECT_NE(said.find("the limit on file sizes is too low"), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
  EXPECT_FALSE(fs::exists(folder_ / "made"));
}

TEST_F(Refusals, ResultsThatFindNoRoom) {
  const std::string program = HEADROOM_BUILD_DIR "/bin/headroom";
  const int status = std::system((program + " schema > /dev/full 2> " + (folder_ / "err").string()).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 6);
  EXPECT_NE(read_text(folder_ / "err").find("[cli] standard output could not be written in full"), std::string::npos)
      << read_text(folder_ / "err");
  EXPECT_EQ(WEXITSTATUS(std::system(("bash -o pipefail -c '" + program + " schema | head -c 1 > /dev/null'").c_str())),
            0);
}

TEST_F(Refusals, AnInstructionSetThatIsNoneOfThem) {
  expect(headroom_program({"limits"}, here({"HEADROOM_MAX_CPU_ISA=AVX2"})), 2,
         "[cli] the environment variable HEADROOM_MAX_CPU_ISA is \"AVX2\"; it must be \"baseline\", \"avx2\" or "
         "\"avx512\"");
}

TEST_F(Refusals, APluginThatCallsExit) {
  expect(run({"model.options.mistake=exit"}), 3, "[plugin] trial_model step: the plugin called exit() there");
  EXPECT_EQ(read_json(run_folder() / "postmortem.json").at("ended").at("exit_code"), 3);
}

TEST_F(Refusals, PluginsThatAreNotThere) {
  expect(run({"model.plugin=nonsense"}), 3, "nonsense");
  expect(run({"data.source=./nonsense.so"}), 3, "nonsense.so");
  EXPECT_FALSE(fs::exists(folder_ / "runs")) << "a run that cannot begin leaves no folder";
}

TEST_F(Refusals, DataThatIsNotThere) {
  expect(run({"data.options.path=nowhere"}), 4, (folder_ / "nowhere/seed.txt").string());
}

TEST_F(Refusals, DataThatCannotBeRead) {
  expect(run({"data.options.broken_at=[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]",
              "data.split={train=1.0,val=0.0,test=0.0}"}),
         4, "is damaged");
}

TEST_F(Refusals, TooLittleData) {
  expect(run({"data.options.samples=4", "data.options.group_size=4"}), 2, "data.split");
  expect(run({"train.batch_size=200", "train.drop_last=true"}), 2,
         "no whole window of 400 samples fits the 120 training samples");
}

TEST_F(Refusals, DevicesThatAreNotThere) { expect(run({"experiment.device=cuda:99"}), 2, "experiment.device"); }

// The programs again, whose trainer asks for `library` where it asks for LibTorch: a name as long as libtorch_cpu.so.
class MissingLibrary : public Refusals {
 protected:
  void expect_sentence(const std::string& library, const std::string& sentence) {
    for (const char* folder : {"bin", "libexec"}) fs::create_directory(folder_ / folder);
    fs::copy(HEADROOM_BUILD_DIR "/bin/headroom", folder_ / "bin", fs::copy_options::overwrite_existing);
    std::string trainer = read_text(HEADROOM_BUILD_DIR "/libexec/headroom-train");
    constexpr std::string_view asked_for = "libtorch_cpu.so";
    ASSERT_EQ(library.size(), asked_for.size());
    for (size_t at = 0; (at = trainer.find(asked_for, at)) != std::string::npos;)
      trainer.replace(at, library.size(), library);
    write_text(folder_ / "libexec/headroom-train", trainer);
    fs::permissions(folder_ / "libexec/headroom-train", fs::perms::owner_all);
    for (const std::string command : {"run", "validate"}) {
      const int status = std::system(("cd " + folder_.string() + " && XDG_CACHE_HOME=cache bin/headroom " + command +
                                      " trial.toml --plugin-dir " HEADROOM_TEST_PLUGIN_DIR " > out 2> err")
                                         .c_str());
      EXPECT_EQ(WEXITSTATUS(status), 2) << command;
      EXPECT_EQ(read_text(folder_ / "err"), "[libraries] headroom-train cannot start without " + library +
                                                ", which the dynamic loader does not find: " + sentence + "\n")
          << command;
      EXPECT_EQ(read_text(folder_ / "out"), "");
    }
    EXPECT_FALSE(fs::exists(folder_ / "runs")) << "a run that cannot begin leaves no folder";
  }
};

TEST_F(MissingLibrary, OfNvidia) {
  expect_sentence("libcublas.so.99",
                  "LibTorch's CUDA build needs NVIDIA's libraries, on a machine without a GPU too: let pip install "
                  "torch with what it depends on, or name their folders in LD_LIBRARY_PATH, or build Headroom with "
                  "LibTorch's CPU build");
}

TEST_F(MissingLibrary, OfLibTorch) {
  expect_sentence("libtorch_xyz.so",
                  "LibTorch is not where Headroom was built with it: put it back, or build Headroom again");
}

TEST_F(MissingLibrary, OfTheSystem) {
  expect_sentence("libcurlier.so.9", "install what is missing, or build Headroom again");
}

TEST_F(Refusals, MetricsNobodyMeasures) {
  expect(run({"experiment.metric=val/nonsense"}), 2,
         "'val/nonsense' is not measured: use train/ or val/ followed by one of loss, mae, rmse, closeness, mse, r2");
  expect(run({"experiment.metric=test/loss"}), 2, "'test/loss' is not measured");
}

TEST_F(Refusals, GroupsOfParametersThatAreNotThere) {
  write_text(folder_ / "groups.toml",
             "extends = \"trial.toml\"\n[[train.groups]]\nmatch = \"hiden.*\"\nfreeze = true\n");
  for (const std::string command : {"run", "validate"}) {
    expect(
        headroom({command, "groups.toml", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR}), 2,
        "[config] groups.toml:2:1: train.groups[0].match is \"hiden.*\", which no parameter of model 'trial_model' is "
        "called: did you mean \"hidden.*\"?");
  }
  EXPECT_FALSE(fs::exists(folder_ / "runs")) << "a run that cannot begin leaves no folder";
}

TEST_F(Refusals, WeightsThatAreNotThere) {
  expect(run({"init.from=nowhere.safetensors"}), 2, "nowhere.safetensors");
  EXPECT_FALSE(fs::exists(folder_ / "runs")) << "a run that cannot begin leaves no folder";
  expect(headroom({"validate", "trial.toml", "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR, "--set",
                   "init.from=nowhere.safetensors"}),
         2, "nowhere.safetensors");
}

TEST_F(Refusals, WordsThatMakeNoSense) {
  for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                 {"nonsense"},
                                                                 {"run"},
                                                                 {"run", "trial.toml", "--nonsense"},
                                                                 {"run", "trial.toml", "--set", "train.epochs"},
                                                                 {"run", "trial.toml", "--set", "=1"},
                                                                 {"run", "trial.toml", "--resume", "runs"},
                                                                 {"run", "nowhere.toml"},
                                                                 {"run", "."},
                                                                 {"validate"},
                                                                 {"validate", "nowhere.toml"},
                                                                 {"evaluate"},
                                                                 {"evaluate", "nowhere"},
                                                                 {"plugins"},
                                                                 {"plugins", "show"},
                                                                 {"data", "synth", "nowhere.toml"},
                                                                 {"parity", "tds_lstm"}}) {
    const Finished finished = headroom(words);
    std::string line;
    for (const std::string& word : words) line += word + " ";
    EXPECT_EQ(finished.exit_code, 2) << line << "\n" << finished.err;
    EXPECT_NE(finished.err, "") << line;
    EXPECT_EQ(finished.err.find("terminate called"), std::string::npos) << line << finished.err;
  }
}

// Looking at such a name is an error itself, and not the answer that nothing is there.
TEST_F(Refusals, NamesThatAreTooLong) {
  const std::string name(300, 'n'), plugins = HEADROOM_TEST_PLUGIN_DIR;
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"run", "--resume", name},
           {"run", "trial.toml", "--no-plan", "--set", "init.from=" + name, "--plugin-dir", plugins},
           {"predict", ".", "--input", name},
           {"profile", "trial.toml", "--trace", name + "/trace.json"},
           {"parity", "tds_lstm", "--options", name, "--weights", name, "--batch", name, "--out", name},
           {"plugins", "build", name},
           {"runs", "show", name},
           {"postmortem", name},
           {"report", name}})
    expect(headroom(words), 2, name);
  expect(headroom({"new", "model", "wrist", "--in", name}), 6, name);
  expect(headroom({"new", "model", "wrist", "--in", "/proc"}), 6, "/proc/wrist");
}

TEST_F(Refusals, AWorkingFolderThatIsGone) {
  const std::string command = "mkdir " + (folder_ / "gone").string() + " && cd " + (folder_ / "gone").string() +
                              " && rmdir ../gone && " + HEADROOM_BUILD_DIR + "/bin/headroom validate trial.toml 2> " +
                              (folder_ / "err").string();
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
  EXPECT_NE(read_text(folder_ / "err").find("[cli] the working folder cannot be used"), std::string::npos)
      << read_text(folder_ / "err");
}

TEST_F(Refusals, ExperimentFilesOfNonsense) {
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "[";
  std::string random(4096, '\0');
  for (size_t i = 0; i < random.size(); ++i) random[i] = static_cast<char>((i * 2654435761u) >> 13);
  for (const std::string& text :
       {std::string(), std::string("\0\0\0", 3), std::string("\xff\xfe"), random, "a = " + deep,
        std::string("[experiment"), std::string("experiment = 3"),
        std::string("[experiment]\nname = \"x\"\n[experiment]\nname = \"y\"\n"),
        std::string("[experiment]\nname = 7\n"), std::string("extends = \"broken.toml\"\n")}) {
    write_text(folder_ / "broken.toml", text);
    expect(headroom({"run", "broken.toml"}), 2, "broken.toml");
  }
}

// Whoever reads our output may leave first.
TEST_F(Refusals, AReaderThatLeavesDoesNotEndTheRun) {
  const std::string command = std::string("cd ") + folder_.string() + " && " + HEADROOM_BUILD_DIR +
                              "/bin/headroom run trial.toml --set train.log_every=1 --plugin-dir " +
                              HEADROOM_TEST_PLUGIN_DIR + " 2>&1 | head -c 1 > /dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("state"), "finished");
}

// Files of the run must not get their numbers, nor the pipe on which the supervisor hears of its folder.
TEST_F(Refusals, AStandardStreamThatIsClosedIsNoFileOfTheRun) {
  const std::string command = std::string("cd ") + folder_.string() + " && " + HEADROOM_BUILD_DIR +
                              "/bin/headroom run trial.toml --set train.log_every=1 --plugin-dir " +
                              HEADROOM_TEST_PLUGIN_DIR + " <&- >&- 2>&-";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("state"), "finished");
  EXPECT_FALSE(read_json_lines(run_folder() / "events.jsonl").empty());
  EXPECT_TRUE(fs::exists(run_folder() / "report.html"));
  const std::string lock = read_text(run_folder() / "lock");
  EXPECT_EQ(lock.find_first_not_of("0123456789\n"), std::string::npos) << lock;
}

// Started by a program that ignores its children's ends, as some batch systems do.
TEST_F(Refusals, AParentThatIgnoresItsChildrenHidesNoExitCode) {
  const std::string command =
      std::string("cd ") + folder_.string() +
      " && python3 -c \"import "
      "os,signal,sys;signal.signal(signal.SIGCHLD,signal.SIG_IGN);os.execv(sys.argv[1],sys.argv[1:])\" " +
      HEADROOM_BUILD_DIR + "/bin/headroom run trial.toml --set model.plugin=nonsense 2> /dev/null";
  if (std::system("python3 -c '' 2> /dev/null") != 0) GTEST_SKIP() << "needs python3 to ignore a signal";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

}  // namespace
}  // namespace headroom
