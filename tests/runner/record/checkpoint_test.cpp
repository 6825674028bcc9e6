#include "record/checkpoint.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <set>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.hpp"
#include "memory/file_memory.hpp"
#include "memory/process_memory.hpp"
#include "temporary_folder.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CheckpointTest : public TemporaryFolder {
 protected:
  fs::path checkpoints() const { return folder_ / "checkpoints"; }

  // A checkpoint whose tensors say which one it is.
  fs::path save(Checkpoints& target, int64_t step, bool is_best = false, char content = 'x', size_t size = 8) {
    std::string model(size, content), state(size, static_cast<char>(content + 1));
    std::vector<TensorBytes> m = {
        {"w", {kDLUInt, 8, 1}, {static_cast<int64_t>(size)}, std::as_bytes(std::span(model))}};
    std::vector<TensorBytes> s = {
        {"m", {kDLUInt, 8, 1}, {static_cast<int64_t>(size)}, std::as_bytes(std::span(state))}};
    return target.save({step, m, s, {{"epoch", step / 10}, {"lr", 0.1}}}, is_best);
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(checkpoints())) found.insert(entry.path().filename().string());
    return found;
  }
  // In a child: the file system is its own and goes with it.
  void mount_tmpfs(const char* options) const {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", folder_.c_str(), "tmpfs", 0, options) != 0) {
      throw std::runtime_error("no mount");
    }
  }
  static char content_of(const fs::path& path) {
    return static_cast<char>(load_checkpoint(path).model.find("w")->data[0]);
  }
};

using Names = std::set<std::string>;

TEST_F(CheckpointTest, ComesBackAsItWasSaved) {
  Checkpoints target(checkpoints());
  fs::path path = save(target, 1200, true, 'q');
  EXPECT_EQ(path, checkpoints() / "step-00001200");
  LoadedCheckpoint loaded = load_checkpoint(path);
  EXPECT_EQ(static_cast<char>(loaded.model.find("w")->data[7]), 'q');
  EXPECT_EQ(static_cast<char>(loaded.state.find("m")->data[0]), 'r');
  EXPECT_EQ(loaded.json, (nlohmann::json{{"epoch", 120}, {"lr", 0.1}, {"format", 1}, {"step", 1200}}));
  EXPECT_EQ(names(), (Names{"step-00001200", "last", "best"}));
  EXPECT_EQ(fs::read_symlink(checkpoints() / "last"), "step-00001200");
  EXPECT_EQ(content_of(checkpoints() / "best"), 'q');
}

// Names of channels and classes come from data files, as MATLAB or a table in Latin-1 has them.
TEST_F(CheckpointTest, TextThatIsNoUtf8IsSavedAllTheSame) {
  Checkpoints target(checkpoints());
  const std::vector<TensorBytes> none = {{"w", {kDLUInt, 8, 1}, {0}, {}}};
  const fs::path path = target.save({7, none, none, {{"channels", {"elbow \xB0", "grip"}}}}, false);
  const nlohmann::json json = load_checkpoint(path).json;
  EXPECT_EQ(json.at("channels"), (nlohmann::json{"elbow \xEF\xBF\xBD", "grip"}));
}

TEST_F(CheckpointTest, NothingIsTouchedBeforeTheFirstSave) {
  fs::create_directories(checkpoints() / ".tmp-step-00000003-99");
  Checkpoints reader(checkpoints());
  EXPECT_EQ(reader.last(), std::nullopt);
  EXPECT_EQ(reader.best(), std::nullopt);
  EXPECT_EQ(names(), (Names{".tmp-step-00000003-99"}));
  Checkpoints nowhere(folder_ / "absent");
  EXPECT_EQ(nowhere.last(), std::nullopt);
  EXPECT_FALSE(fs::exists(folder_ / "absent"));
}

TEST_F(CheckpointTest, KeepsTheNewestAndTheBest) {
  Checkpoints target(checkpoints(), 2);
  save(target, 10);
  save(target, 20, true);
  for (int64_t step : {30, 40, 50}) save(target, step);
  EXPECT_EQ(names(), (Names{"step-00000020", "step-00000040", "step-00000050", "last", "best"}));
  EXPECT_EQ(target.last(), checkpoints() / "step-00000050");
  EXPECT_EQ(target.best(), checkpoints() / "step-00000020");
  save(target, 60, true);
  EXPECT_EQ(names(), (Names{"step-00000050", "step-00000060", "last", "best"}));
}

TEST_F(CheckpointTest, StepsBeyondEightDigitsAreInOrder) {
  Checkpoints target(checkpoints(), 1);
  save(target, 99'999'999);
  save(target, 123'456'789);
  EXPECT_EQ(names(), (Names{"step-123456789", "last"}));
}

TEST_F(CheckpointTest, TheSameStepIsReplaced) {
  Checkpoints target(checkpoints());
  save(target, 10, false, 'a');
  save(target, 10, false, 'b');
  EXPECT_EQ(content_of(checkpoints() / "last"), 'b');
  EXPECT_EQ(names(), (Names{"step-00000010", "last"}));
}

TEST_F(CheckpointTest, LeftoversOfAnInterruptedWriteGoWithTheNextSave) {
  Checkpoints first(checkpoints());
  save(first, 10, false, 'a');
  fs::create_directories(checkpoints() / ".tmp-step-00000020-99");
  write_text(checkpoints() / ".tmp-step-00000020-99" / "model.safetensors", "half");
  fs::create_symlink("step-00000010", checkpoints() / ".tmp-last-99");
  // A crash between the two renames of a replacement: only the replaced one is there.
  fs::rename(checkpoints() / "step-00000010", checkpoints() / ".old-step-00000010");
  Checkpoints second(checkpoints());
  save(second, 20);
  EXPECT_EQ(names(), (Names{"step-00000010", "step-00000020", "last"}));
  EXPECT_EQ(content_of(checkpoints() / "step-00000010"), 'a');
}

// Where a file system cannot exchange two names, as NFS.
TEST_F(CheckpointTest, ACrashBetweenTheRenamesOfAReplacementLosesNoCheckpoint) {
  Checkpoints first(checkpoints());
  save(first, 10, true, 'a');
  fs::rename(checkpoints() / "step-00000010", checkpoints() / ".old-step-00000010");
  const Checkpoints reader(checkpoints());
  ASSERT_TRUE(reader.last());
  EXPECT_EQ(content_of(*reader.last()), 'a');
  ASSERT_TRUE(reader.best());
  EXPECT_EQ(content_of(*reader.best()), 'a');
  EXPECT_EQ(names(), (Names{".old-step-00000010", "last", "best"})) << "reading touches nothing";
  // Once the new one is there, it is the one of that step.
  fs::create_directory(checkpoints() / "other");
  Checkpoints other(checkpoints() / "other");
  fs::rename(save(other, 10, false, 'b'), checkpoints() / "step-00000010");
  EXPECT_EQ(content_of(*reader.last()), 'b');
}

TEST_F(CheckpointTest, BestIsMendedWhereACrashCameBeforeItsLink) {
  Checkpoints target(checkpoints(), 9);
  save(target, 10, true, 'a');
  save(target, 20, false, 'b');
  target.mend_best(20);
  EXPECT_EQ(content_of(*target.best()), 'b');
  target.mend_best(30);
  EXPECT_EQ(content_of(*target.best()), 'b') << "there is no checkpoint of step 30";
  EXPECT_EQ(names(), (Names{"step-00000010", "step-00000020", "last", "best"}));
  Checkpoints nowhere(folder_ / "absent");
  nowhere.mend_best(10);
  EXPECT_FALSE(fs::exists(folder_ / "absent"));
}

TEST_F(CheckpointTest, LastFallsBackOverUnreadableOnes) {
  Checkpoints target(checkpoints(), 4);
  save(target, 10, false, 'a');
  for (int64_t step : {20, 30, 40}) save(target, step, step == 20);
  fs::resize_file(checkpoints() / "step-00000040" / "state.safetensors", 60);
  fs::remove(checkpoints() / "step-00000030" / "checkpoint.json");
  write_text(checkpoints() / "step-00000020" / "checkpoint.json", "{\"format\": 1");
  EXPECT_EQ(target.last(), checkpoints() / "step-00000010");
  EXPECT_EQ(target.best(), std::nullopt);
  // The run goes on from 10: what could not be read is the first to go, never what is saved now.
  Checkpoints resumed(checkpoints(), 2);
  save(resumed, 15, true, 'b');
  EXPECT_EQ(names(), (Names{"step-00000010", "step-00000015", "last", "best"}));
  EXPECT_EQ(content_of(*resumed.last()), 'b');
}

TEST_F(CheckpointTest, WhatIsNoCheckpointIsRefusedByName) {
  auto saying = [](const fs::path& path) { return sentence_of([&] { load_checkpoint(path); }); };
  EXPECT_THAT(saying(folder_ / "absent"), HasSubstr("absent: is no checkpoint: there is no such folder"));
  EXPECT_THAT(saying(folder_), HasSubstr("is no checkpoint: it holds no checkpoint.json"));

  Checkpoints target(checkpoints());
  fs::path path = save(target, 10);
  auto with_json = [&](const std::string& text) {
    write_text(path / "checkpoint.json", text);
    return saying(path);
  };
  EXPECT_THAT(with_json("[1]"), HasSubstr("checkpoint.json: is damaged: not a JSON object"));
  EXPECT_THAT(with_json("{\"step\": 10"), HasSubstr("is damaged: not a JSON object"));
  EXPECT_THAT(with_json("{\"step\": 10}"), HasSubstr("holds no format number"));
  EXPECT_THAT(with_json("{\"format\": 2, \"step\": 10}"), HasSubstr("has format 2; this Headroom reads format 1"));
  EXPECT_THAT(with_json("{\"format\": 1, \"step\": -1}"), HasSubstr("holds no step"));
  EXPECT_EQ(with_json("{\"format\": 1, \"step\": 10}"), "");
  fs::resize_file(path / "model.safetensors", 3);
  EXPECT_THAT(saying(path), HasSubstr("model.safetensors: is no safetensors file"));
}

// Runs `body` in a child, which may change limits and users without harm; its sentence comes back through a pipe.
template <typename Body>
std::string in_child(Body body) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  pid_t child = ::fork();
  if (child == 0) {
    std::string text = sentence_of(body);
    [[maybe_unused]] ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  char text[4096];
  ssize_t length = ::read(ends[0], text, sizeof text);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return {text, static_cast<size_t>(std::max<ssize_t>(length, 0))};
}

TEST_F(CheckpointTest, WhatItLacksIsSaid) {
  Checkpoints target(checkpoints());
  const fs::path path = save(target, 10);
  const LoadedCheckpoint loaded = load_checkpoint(path);
  using Type = nlohmann::json::value_t;
  EXPECT_EQ(loaded.at("lr", Type::number_float), 0.1);
  EXPECT_EQ(sentence_of([&] { loaded.at("normalizer", Type::array); }),
            "[checkpoint] " + (path / "checkpoint.json").string() + ": is damaged: it holds no normalizer");
  EXPECT_EQ(sentence_of([&] { loaded.at("lr", Type::string); }),
            "[checkpoint] " + (path / "checkpoint.json").string() + ": is damaged: it holds no lr");
}

TEST_F(CheckpointTest, AWriteThatFailsLeavesEarlierOnesIntact) {
  Checkpoints target(checkpoints());
  save(target, 10, true, 'a');
  std::string sentence = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit {
      100'000, 100'000
    };
    ::setrlimit(RLIMIT_FSIZE, &limit);
    save(target, 20, true, 'b', 200'000);
  });
  EXPECT_THAT(sentence, HasSubstr("[record] " + (checkpoints() / ".tmp-step-00000020-").string()));
  EXPECT_THAT(sentence, HasSubstr("/model.safetensors cannot be written: File too large"));
  EXPECT_EQ(names(), (Names{"step-00000010", "last", "best"}));
  EXPECT_EQ(content_of(checkpoints() / "last"), 'a');
}

TEST_F(CheckpointTest, AFullFileSystemIsSaidAndLeavesEarlierOnesIntact) {
  const std::string outcome = in_child([&] {
    mount_tmpfs("size=1m");
    Checkpoints target(checkpoints(), 3);
    save(target, 10, true, 'a', 100'000);
    const std::string sentence = sentence_of([&] { save(target, 20, true, 'b', 600'000); });
    if (names() != Names{"step-00000010", "last", "best"} || content_of(checkpoints() / "last") != 'a') {
      throw std::runtime_error("the earlier checkpoint is damaged");
    }
    save(target, 30, true, 'c', 100'000);  // what was written in vain is gone again
    throw std::runtime_error(sentence);
  });
  if (outcome == "no mount") GTEST_SKIP() << "mounting a file system needs root";
  EXPECT_THAT(outcome, HasSubstr("cannot be written: No space left on device; free some space there or choose"));
}

TEST_F(CheckpointTest, ThoseInMemoryCountAsLongAsTheyAreKept) {
  const std::string outcome = in_child([&] {
    mount_tmpfs("size=8m");
    {
      Checkpoints earlier(checkpoints(), 1);
      save(earlier, 1, false, 'a', 100'000);
    }
    const int64_t before = bytes_written_in_memory();
    Checkpoints target(checkpoints(), 2);
    std::string counted;
    for (const int64_t step : {10, 20, 30, 30, 40}) {
      save(target, step, false, 'b', 200'000);
      counted += " " + std::to_string((bytes_written_in_memory() - before) / 100'000);
    }
    throw std::runtime_error("counted" + counted);
  });
  if (outcome == "no mount") GTEST_SKIP() << "mounting a file system needs root";
  EXPECT_EQ(outcome, "counted 4 6 6 6 6") << "400 kB each; 200 kB were there before";
}

// Room for two and a half of them: the newest and the best stay, and one more is refused only where both are in the
// way.
TEST_F(CheckpointTest, OlderOnesInMemoryGoWhereANewOneFindsNoRoom) {
  constexpr int64_t size = 10'000'000, room = 5 * size;  // of model and of state
  const std::string outcome = in_child([&] {
    mount_tmpfs("size=200m");
    set_memory_limit(int64_t{1} << 40);
    const auto look = [&] {
      int64_t written = 0;
      for (const auto& entry : fs::recursive_directory_iterator(folder_))
        written += entry.is_regular_file() ? static_cast<int64_t>(entry.file_size()) : 0;
      const int64_t bound = held_bytes() + room - written;
      set_memory_ceiling(bound + cushion_bytes(bound));
      return int64_t{0};
    };
    look();
    set_ceiling_look(look);
    Checkpoints target(checkpoints(), 3);
    save(target, 10, false, 'a', size);
    save(target, 20, true, 'b', size);
    save(target, 30, false, 'c', size);
    if (names() != Names{"step-00000020", "step-00000030", "last", "best"} || target.removed_for_room() != 1)
      throw std::runtime_error("the oldest did not make room");
    const std::string sentence = sentence_of([&] { save(target, 40, false, 'd', size); });
    if (names() != Names{"step-00000020", "step-00000030", "last", "best"} ||
        content_of(checkpoints() / "last") != 'c' || content_of(checkpoints() / "best") != 'b') {
      throw std::runtime_error("a checkpoint that was needed is gone");
    }
    throw std::runtime_error("the last one: " + sentence);
  });
  if (outcome == "no mount") GTEST_SKIP() << "mounting a file system needs root";
  EXPECT_THAT(outcome, HasSubstr("the last one: [checkpoint] "));
  EXPECT_THAT(outcome, HasSubstr("lies in memory (tmpfs), where a checkpoint of 19.1 MiB counts as held"));
}

TEST_F(CheckpointTest, AReadOnlyFolderIsSaid) {
  Checkpoints target(checkpoints());
  save(target, 10, false, 'a');
  fs::permissions(folder_, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec |
                               fs::perms::group_read | fs::perms::others_read);
  fs::permissions(checkpoints(),
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  std::string sentence = in_child([&] {
    if (::getuid() == 0 && ::setuid(65534) != 0) return;  // root may write anywhere
    save(target, 20);
  });
  fs::permissions(checkpoints(), fs::perms::owner_all);
  EXPECT_THAT(sentence, HasSubstr("cannot be written: Permission denied; make it writable or choose another folder"));
  EXPECT_EQ(names(), (Names{"step-00000010", "last"}));
}

TEST_F(CheckpointTest, AKilledWriterLeavesCompleteOnes) {
  Checkpoints parent(checkpoints());
  save(parent, 1, false, 'a', 300'000);
  for (int round = 0; round < 10; ++round) {
    pid_t child = ::fork();
    if (child == 0) {
      Checkpoints writer(checkpoints());
      for (int64_t step = 1;; ++step) save(writer, step % 3 + 1, step % 2 == 0, 'a', 300'000);
    }
    ::usleep(3000 + 2500 * static_cast<unsigned>(round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const std::string& name : names()) {
      if (name.starts_with(".")) continue;
      EXPECT_EQ(content_of(checkpoints() / name), 'a') << name;
    }
    EXPECT_NE(parent.last(), std::nullopt);
  }
}

}  // namespace
}  // namespace headroom
