// headroom checkpoint import, as a user meets it.
#include <algorithm>
#include <gmock/gmock.h>

#include "../../end_to_end/program.hpp"
#include "record/safetensors.hpp"
#include "record/temporary_folder.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CheckpointCommand : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    fs::copy_file(HEADROOM_SOURCE_DIR "/tests/golden/checkpoint/state.ckpt", folder_ / "policy.ckpt");
  }
  Finished import(std::vector<std::string> words) const {
    words.insert(words.begin(), {"checkpoint", "import"});
    return headroom_program(std::move(words), {.folder = folder_, .environment = {}});
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
};

TEST_F(CheckpointCommand, WritesSafetensorsBesideTheFile) {
  const Finished done = import({"policy.ckpt", "--key", "model"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "wrote policy.safetensors: 13 tensors, 224 B\n");
  EXPECT_EQ(SafetensorsFile(folder_ / "policy.safetensors").tensors().size(), 13u);
  EXPECT_EQ(files(), (std::vector<std::string>{"policy.ckpt", "policy.safetensors"}));
}

TEST_F(CheckpointCommand, OverwritesNothing) {
  write_text(folder_ / "mine.safetensors", "mine");
  const Finished done = import({"policy.ckpt", "--key", "model", "--out", "mine.safetensors"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_EQ(done.err, "[checkpoint] mine.safetensors exists already; name another file with --out\n");
  EXPECT_EQ(read_text(folder_ / "mine.safetensors"), "mine");
}

TEST_F(CheckpointCommand, LeavesNothingOfARefusedFile) {
  const Finished done = import({"policy.ckpt"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_THAT(done.err, HasSubstr("holds a whole number as 'epoch'"));
  EXPECT_EQ(files(), (std::vector<std::string>{"policy.ckpt"}));
  EXPECT_EQ(import({"policy.ckpt", "--key", "model", "--out", "nowhere/x.safetensors"}).exit_code, 6);
}

}  // namespace
}  // namespace headroom
