// Situations in which a run was once killed, or gave up, although it fits. Each is as small as it can be.
#include <cctype>
#include <cstdlib>
#include <sys/statfs.h>
#include <unistd.h>

#include "in_cgroup.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// "other -7.1 MiB"
bool holds_less_than_nothing(const std::string& text) {
  for (size_t at = text.find(" -"); at != std::string::npos; at = text.find(" -", at + 1)) {
    if (at > 0 && at + 2 < text.size() && std::isalpha(text[at - 1]) != 0 && std::isdigit(text[at + 2]) != 0)
      return true;
  }
  return false;
}

class KernelDefects : public InCgroup {
 protected:
  // Runs in a cgroup of its own; the kernel must not have had to kill.
  Finished run_in(int64_t limit, const std::vector<std::string>& words, const std::vector<gid_t>& groups = {},
                  const std::vector<std::string>& environment = {}, Neighbour::Growth neighbour = {}) const {
    const KernelCgroup cgroup(limit);
    EXPECT_EQ(cgroup.why_not(), "");
    const Neighbour beside(cgroup, neighbour);
    EXPECT_TRUE(neighbour.wait_seconds > 0 || neighbour.seconds > 0 ||
                eventually([&] { return cgroup.used_bytes() >= neighbour.bytes; }));
    StartPlace place = inside(cgroup);
    place.groups = groups;
    place.environment = environment;
    Finished finished = headroom_program(words, place);
    EXPECT_EQ(cgroup.oom_kills(), 0) << "in " << limit / mib << " MiB, exit " << finished.exit_code << ":\n"
                                     << finished.err;
    return finished;
  }
  Finished run_free(const std::vector<std::string>& words) const { return headroom_program(words, here()); }
};

std::vector<std::string> operator+(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Slots are filled long after they were made: memory that nobody has touched yet will be.
const std::vector<std::string> slow_readers = {"model.options.activation_mib=50", "model.options.sleep_ms=400",
                                               "data.options.sleep_ms=700",       "data.num_workers=2",
                                               "data.prefetch_factor=8",          "train.micro_batch=1"};

TEST_F(KernelDefects, BatchesThatAreFilledLateCount) {
  for (const int64_t limit : {400, 440}) {
    const Finished finished = run_in(
        limit * mib, hungry(slow_readers + std::vector<std::string>{"--no-plan", "data.options.floats=1048576"}));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    fs::remove_all(folder_ / "runs");
  }
}

TEST_F(KernelDefects, BatchesThatAreFilledLateCountInAPlan) {
  const Finished finished = run_in(
      480 * mib, hungry(slow_readers + std::vector<std::string>{"data.options.floats=2097152", "train.max_steps=20"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

TEST_F(KernelDefects, NobodyHoldsLessThanNothing) {
  for (const std::string batch : {"1", "4"}) {
    const Finished finished = run_free(
        hungry(slow_readers + std::vector<std::string>{"--no-plan", "data.options.floats=1048576", "train.max_steps=4",
                                                       "memory.limit=357 MiB", "train.batch_size=" + batch}));
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_FALSE(holds_less_than_nothing(finished.err)) << finished.err;
    EXPECT_LE(measured_peak(), 357 * mib);
    for (const auto& line : read_json_lines(run_folder() / "memory.jsonl")) {
      for (const auto& [key, value] : line.items()) {
        if (key.ends_with("_bytes")) {
          EXPECT_GE(value.get<int64_t>(), 0) << key;
        }
      }
    }
    fs::remove_all(folder_ / "runs");
  }
}

TEST_F(KernelDefects, FewerBatchesAreReadAheadWhereThatFits) {
  for (const std::string batch : {"1", "4"}) {
    const Finished finished =
        run_in(500 * mib, hungry({"model.options.activation_mib=50", "data.options.floats=2097152",
                                  "data.num_workers=2", "train.max_steps=6", "train.batch_size=" + batch}));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    fs::remove_all(folder_ / "runs");
  }
}

// Less than a twentieth of the cgroup is left, from the beginning to the end.
TEST_F(KernelDefects, ANeighbourThatStaysIsNoPressure) {
  const Finished finished = run_in(1024 * mib,
                                   hungry({"model.options.activation_mib=6", "model.options.sleep_ms=20",
                                           "train.micro_batch=1", "train.epochs=6", "eval.every_epochs=3"}),
                                   {}, {}, Neighbour::Growth{.bytes = 895 * mib});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_LT(measured_peak(), 110 * mib);
}

// Up to its limit and slowly, so that the room seems to go away: in a step, and with the batches read ahead.
TEST_F(KernelDefects, ItsOwnSteadyGrowthIsNoPressure) {
  const Finished in_a_step =
      run_in(600 * mib, hungry({"--no-plan", "model.options.parameters_mib=40", "model.options.activation_mib=300",
                                "model.options.layers=40", "model.options.sleep_ms=4000", "train.max_steps=4"}));
  EXPECT_EQ(in_a_step.exit_code, 0) << in_a_step.err;
  fs::remove_all(folder_ / "runs");
  const Finished with_batches = run_in(
      400 * mib, hungry(slow_readers + std::vector<std::string>{"--no-plan", "data.options.floats=1048576",
                                                                "model.options.activation_mib=150",
                                                                "model.options.layers=3", "train.max_steps=40"}));
  EXPECT_EQ(with_batches.exit_code, 0) << with_batches.err;
}

// /proc/self/status is longer than a page then.
TEST_F(KernelDefects, ManyGroupsHideNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may choose supplementary groups";
  std::vector<gid_t> groups(350);
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<gid_t>(4000000000 + i);
  const std::vector<std::string> words =
      hungry({"model.options.activation_mib=10", "train.batch_size=24", "train.epochs=2"});
  const Finished finished = run_in(300 * mib, words, groups);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_GT(measured_peak(), 50 * mib);
}

// What fills a limit of some hundred MiB in micro-batches that adapt.
const std::vector<std::string> fills = {
    "model.options.activation_mib=4", "train.batch_size=96",       "train.epochs=8",
    "data.options.samples=128",       "model.options.sleep_ms=20", "eval.every_epochs=4"};

TEST_F(KernelDefects, AChildsMemoryComesOutOfTheRoom) {
  for (const char* seconds : {"0", "0.3", "3"}) {
    const std::string command = std::string(HEADROOM_BUILD_DIR "/tests/end_to_end_hog 150 ") + seconds;
    const Finished finished =
        run_in(600 * mib, hungry(fills + std::vector<std::string>{"record.events_to=" + command}));
    EXPECT_EQ(finished.exit_code, 0) << "within " << seconds << " s: " << finished.err;
    fs::remove_all(folder_ / "runs");
  }
}

bool on_tmpfs(const fs::path& folder) {
  constexpr auto tmpfs = 0x01021994;
  struct statfs status {};
  return statfs(folder.c_str(), &status) == 0 && status.f_type == tmpfs;
}

TEST_F(KernelDefects, AFolderInMemoryIsMemory) {
  if (!on_tmpfs("/dev/shm")) GTEST_SKIP() << "/dev/shm is no tmpfs";
  const fs::path shm = "/dev/shm/headroom-test-" + std::to_string(getpid());
  fs::create_directories(shm);
  const std::vector<std::string> checkpoints = {"model.options.parameters_mib=60", "train.max_steps=8",
                                                "checkpoint.every_steps=2"};
  ASSERT_EQ(run_free(hungry(checkpoints)).exit_code, 0);
  const int64_t peak = measured_peak();
  for (const int64_t more : {30 * mib, 90 * mib, 150 * mib}) {
    const Finished finished =
        run_in((peak + more) * 10 / 9, hungry(checkpoints, shm / "runs"), {}, {"TMPDIR=" + shm.string()});
    EXPECT_TRUE(finished.exit_code == 0 ||
                (finished.exit_code == 5 && finished.err.find("/dev/shm/") != std::string::npos))
        << finished.exit_code << ": " << finished.err;
    fs::remove_all(shm / "runs");
  }
  fs::remove_all(shm);
}

TEST_F(KernelDefects, MemoryOfAPluginComesOutOfTheRoom) {
  for (const char* held : {"good", "call"}) {
    const std::vector<std::string> own = {"model.options.malloc_mib=60", "model.options.malloc_at_step=3",
                                          std::string("model.options.malloc_for=") + held};
    const Finished finished = run_in(300 * mib, hungry(fills + own));
    EXPECT_EQ(finished.exit_code, 0) << "for a " << held << ": " << finished.err;
    fs::remove_all(folder_ / "runs");
  }
}

// The campaign's Dataset: each process that reads keeps `keep_mib` from its tenth sample on.
std::vector<std::string> read_by_python(int64_t keep_mib) {
  return {"data.source=python",
          "data.options.file=" HEADROOM_SOURCE_DIR "/tests/end_to_end/campaign_python/points.py",
          "data.options.class=Points",
          "data.options.args.keep_mib=" + std::to_string(keep_mib),
          "data.options.args.samples=192",
          "train.batch_size=8",
          "train.epochs=1"};
}

bool has_python() { return std::system("python3 -c 0 2> /dev/null") == 0; }

// Between two looks at them. A probe has what a run has, beside the trainer that asked for it.
TEST_F(KernelDefects, ProcessesThatReadGrowAllAtOnceAndFit) {
  if (!has_python()) GTEST_SKIP() << "there is no python3";
  ASSERT_EQ(run_free(hungry(read_by_python(20) + std::vector<std::string>{"--no-plan"}, "free")).exit_code, 0);
  const int64_t limit = measured_peak("free") * 6 / 5;
  const Finished finished =
      run_in(limit, hungry(read_by_python(20)), {}, {"XDG_CACHE_HOME=" + (folder_ / "cache").string()});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

// The kernel weighs what a process holds, and the trainer holds most. It may end by itself (5): what it asks for while
// the other one has not let go of its memory is refused.
TEST_F(KernelDefects, AProcessThatReadsIsKilledBeforeATrainerThatHoldsMore) {
  if (!has_python()) GTEST_SKIP() << "there is no python3";
  const std::vector<std::string> large = {"--no-plan", "model.options.parameters_mib=150", "model.options.sleep_ms=300",
                                          "train.batch_size=1", "train.max_steps=16"};
  ASSERT_EQ(run_free(hungry(read_by_python(0) + large, "free")).exit_code, 0);
  const KernelCgroup cgroup((measured_peak("free") + 30 * mib) * 10 / 9);
  ASSERT_EQ(cgroup.why_not(), "");
  const Finished finished = headroom_program(hungry(read_by_python(400) + large), inside(cgroup));
  if (finished.exit_code == 0) {
    EXPECT_GT(cgroup.oom_kills(), 0) << finished.err;
  } else {
    EXPECT_EQ(finished.exit_code, 5) << finished.err;
  }
}

// Parameter, gradient, and the gradient of a further piece, and something beside them: nothing of twice the tensor's
// size.
TEST_F(KernelDefects, OneLargeTensorNeedsNoSecondLargerOne) {
  const auto words = [](int64_t parameters_mib) -> std::vector<std::string> {
    return {"--no-plan", "model.options.parameters_mib=" + std::to_string(parameters_mib), "train.max_steps=4"};
  };
  ASSERT_EQ(run_free(hungry(words(0), "base")).exit_code, 0);
  const int64_t limit = measured_peak("base") + 64 * mib * 7 / 2;
  const Finished limited =
      run_free(hungry(words(64) + std::vector<std::string>{"memory.limit=" + std::to_string(limit)}, "limited"));
  EXPECT_EQ(limited.exit_code, 0) << limited.err;
}

TEST_F(KernelDefects, OneLargeActivationFitsNearlyWhatItNeeds) {
  const std::vector<std::string> words = {"--no-plan", "model.options.activation_mib=140", "train.micro_batch=1",
                                          "train.max_steps=4"};
  ASSERT_EQ(run_free(hungry(words)).exit_code, 0);
  const int64_t limit = measured_peak() * 11 / 10;
  const Finished limited =
      run_free(hungry(words + std::vector<std::string>{"memory.limit=" + std::to_string(limit)}, "limited"));
  EXPECT_EQ(limited.exit_code, 0) << limited.err;
  EXPECT_LE(measured_peak("limited"), limit);
}

// Threads' stacks are address space first, and memory as far as they are used.
TEST_F(KernelDefects, AReadersThreadFitsWhereTheRunDoes) {
  const Finished finished = run_free(
      {"run", HEADROOM_SOURCE_DIR "/experiments/spike_vrt/quick_demo.toml", "--out", "runs", "--set",
       "data.options.path=" + (folder_ / "data").string(), "--set", "train.epochs=1", "--set", "eval.every_epochs=1",
       "--set", "experiment.device=cpu", "--set", "train.max_steps=8", "--set", "memory.limit=230 MiB"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

}  // namespace
}  // namespace headroom
