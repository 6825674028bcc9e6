// Runs of the real program in real cgroups, judged by the kernel: where others press, and where it has next to nothing.
#include "in_cgroup.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

using KernelStart = InCgroup;

// Where not even the libraries fit, they are refused memory at some point before main(), each in its own way.
TEST_F(KernelStart, LittleIsASentenceWhereverTheLibrariesStumble) {
  for (int64_t limit = 6 * mib; limit <= 66 * mib; limit += mib) {
    const KernelCgroup cgroup(limit);
    ASSERT_EQ(cgroup.why_not(), "");
    const Finished finished = headroom_program(run_words({"train.epochs=1"}), inside(cgroup));
    EXPECT_EQ(cgroup.oom_kills(), 0) << limit / mib << " MiB";
    if (finished.exit_code == 0) break;
    EXPECT_EQ(finished.exit_code, 5) << limit / mib << " MiB: " << finished.err;
    fs::remove_all(folder_ / "runs");
  }
}

// What libraries and allocators map and never write to takes address space and no memory.
TEST_F(KernelStart, WhatIsOnlyMappedNeedsNoRoom) {
  ASSERT_EQ(headroom_program(run_words({"train.epochs=1"}), here()).exit_code, 0);
  const int64_t limit = measured_peak() * 5 / 4;
  fs::remove_all(folder_ / "runs");
  for (int time = 0; time < 6; ++time) {
    const KernelCgroup cgroup(limit);
    ASSERT_EQ(cgroup.why_not(), "");
    const Finished finished = headroom_program(run_words({"train.epochs=1"}), inside(cgroup));
    EXPECT_EQ(finished.exit_code, 0) << limit / mib << " MiB: " << finished.err;
    fs::remove_all(folder_ / "runs");
  }
}

using KernelRescue = InCgroup;

// Without a limit of its own nothing but the kernel stops it: from step 20 on, more than two samples take all there is.
TEST_F(KernelRescue, AKillForLackOfMemoryTakesARung) {
  write_text(folder_ / "trial.toml",
             read_text(folder_ / "trial.toml") +
                 "\n[rescue]\nrungs = [{ \"train.batch_size\" = 2, \"train.gradient_accumulation_steps\" = 4 }]\n");
  const KernelCgroup cgroup(768 * mib);
  ASSERT_EQ(cgroup.why_not(), "");
  StartPlace place = inside(cgroup);
  place.environment.emplace_back("HEADROOM_TEST_FAULT=hoard:20:2");
  const Finished finished = headroom_program(run_words({"memory.limit=off", "checkpoint.every_steps=5"}), place);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(cgroup.oom_kills(), 1);
  EXPECT_NE(finished.err.find("[rescue] it was killed for lack of memory: rung 1 of 1, "), std::string::npos)
      << finished.err;
  EXPECT_NE(finished.err.find("; this keeps the mathematics; it continues from the last checkpoint\n"),
            std::string::npos)
      << finished.err;
  EXPECT_EQ(read_json(run_folder() / "summary.json").at("steps"), 45);
}

using KernelNamespace = InCgroup;

// As in a container that brings the machine's cgroup mounts along.
TEST_F(KernelNamespace, APrivateCgroupNamespaceHidesNoLimit) {
  if (std::system("unshare -C true 2>/dev/null") != 0) GTEST_SKIP() << "no cgroup namespace can be made here";
  const KernelCgroup cgroup(1024 * mib);
  StartPlace place = inside(cgroup);
  place.own_cgroup_namespace = true;
  const Finished finished = headroom_program(run_words({"train.epochs=1"}), place);
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_LT(read_json(run_folder() / "summary.json").at("memory").at("limit_bytes"), 1024 * mib);
  EXPECT_NE(finished.err.find("of room in cgroup /"), std::string::npos) << finished.err;
  EXPECT_EQ(finished.err.find("unknown"), std::string::npos) << finished.err;
}

using KernelMonitor = InCgroup;

// A run that takes little among others that take much: between 90 %, where it warns, and 95 %, where memory is short.
TEST_F(KernelMonitor, AboveNinetyPercentTheMemoryLineNamesTheKnob) {
  const std::vector<std::string> set = {"memory.limit=off", "memory.log_every=5", "train.epochs=1"};
  const std::string warning = "memory is above 90 %: the largest part of this run is ",
                    knob = "; to make it smaller, change ";
  const int64_t limit = 4096 * mib;
  const KernelCgroup cgroup(limit);
  const Finished alone = headroom_program(run_words(set, "alone"), inside(cgroup));
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_EQ(alone.err.find(warning), std::string::npos) << alone.err;
  // Not its resident size: the pages of libraries count in whichever cgroup read them first.
  int64_t used_alone_bytes = 0;
  for (const auto& line : read_json_lines(run_folder("alone") / "memory.jsonl"))
    used_alone_bytes = std::max(used_alone_bytes, line.at("system_used_bytes").get<int64_t>());

  const int64_t others = limit * 37 / 40 - used_alone_bytes;
  const Neighbour neighbour(cgroup, others);
  ASSERT_TRUE(eventually([&] { return cgroup.used_bytes() > others - mib; }));
  const Finished beside = headroom_program(run_words(set, "beside"), inside(cgroup));
  ASSERT_EQ(beside.exit_code, 0) << beside.err;
  const size_t found = beside.err.find(warning);
  ASSERT_NE(found, std::string::npos) << beside.err;
  EXPECT_LT(beside.err.find(knob, found), beside.err.find('\n', found)) << beside.err;
}

class KernelPressure : public InCgroup {
 protected:
  const std::vector<std::string> set_ = {"model.options.hidden=12000",
                                         "model.options.remember=false",
                                         "data.num_workers=0",
                                         "train.batch_size=48",
                                         "train.micro_batch=24",
                                         "train.gradient_accumulation_steps=1",
                                         "train.epochs=60",
                                         "eval.every_epochs=60"};

  int64_t undisturbed_peak() {
    const Finished finished = run(set_, "undisturbed");
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return read_json(run_folder("undisturbed") / "summary.json").at("memory").at("measured_peak_bytes");
  }

  // A neighbour leaves `room_bytes` of the cgroup's limit to it, once it has saved for the first time.
  void press(int64_t limit, int64_t room_bytes) {
    const KernelCgroup cgroup(limit);
    Program program(run_words(set_, "pressed"), inside(cgroup));
    ASSERT_TRUE(eventually([&] { return program.ended() || has_saved("pressed"); }));
    const Neighbour neighbour(cgroup, limit - room_bytes);
    const Finished finished = program.wait();
    EXPECT_EQ(cgroup.oom_kills(), 0);
    ASSERT_EQ(finished.exit_code, 75) << finished.err;
    EXPECT_NE(finished.err.find("a checkpoint, and the end of this process (exit 75"), std::string::npos)
        << finished.err;
    EXPECT_EQ(read_json(run_folder("pressed") / "summary.json").at("state"), "resumable");
  }

  void expect_it_goes_on_bit_equal() {
    const Finished resumed =
        headroom({"run", "--resume", run_folder("pressed").string(), "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    for (const char* file : {"checkpoints/last/model.safetensors", "checkpoints/last/state.safetensors"}) {
      EXPECT_TRUE(read_text(run_folder("pressed") / file) == read_text(run_folder("undisturbed") / file)) << file;
    }
  }
};

// Others take what the run counted on: it saves, ends with 75, and goes on later as if nothing had been.
TEST_F(KernelPressure, SavesAndLeavesAndGoesOnBitEqual) {
  const int64_t peak = undisturbed_peak();
  ASSERT_FALSE(HasFailure());
  const int64_t limit = 4 * peak, least = limit / 20;  // below which memory is short
  press(limit, peak + least * 2 / 3);
  expect_it_goes_on_bit_equal();
}

// The tenth that is left to the host is more than the run holds at rest: from then on nothing may grow.
TEST_F(KernelPressure, SavesWhereNothingMayGrowAnyMore) {
  const int64_t peak = undisturbed_peak();
  ASSERT_FALSE(HasFailure());
  press(10 * peak, peak * 5 / 4);
  expect_it_goes_on_bit_equal();
}

}  // namespace
}  // namespace headroom
