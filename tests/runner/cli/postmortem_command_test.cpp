#include <nlohmann/json.hpp>

#include "../../end_to_end/program.hpp"
#include "memory/black_box.hpp"
#include "memory/stand_in/stand_in.hpp"

namespace headroom {
namespace {

class PostmortemCommand : public WithFolder {
 protected:
  Finished postmortem(std::vector<std::string> words) const {
    words.insert(words.begin(), "postmortem");
    return headroom_program(std::move(words), {.folder = folder_, .environment = {}});
  }
};

TEST_F(PostmortemCommand, PrintsLinesOrJson) {
  BlackBox box(folder_ / black_box_file);
  box.set_phase(Phase::evaluating);
  box.set_position(30, 2);
  const Finished lines = postmortem({"."});
  EXPECT_EQ(lines.exit_code, 0) << lines.err;
  EXPECT_NE(lines.out.find("it was in phase 'evaluating' of step 30, epoch 2"), std::string::npos) << lines.out;
  const Finished json = postmortem({folder_.string(), "--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed.at("source"), "black box");
  EXPECT_EQ(parsed.at("where").at("step"), 30);
  EXPECT_EQ(parsed.at("ended").at("kind"), "vanished");
}

TEST_F(PostmortemCommand, WantsARunFolder) {
  const Finished finished = postmortem({folder_.string()});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("is not a run folder"), std::string::npos) << finished.err;
  EXPECT_EQ(postmortem({}).exit_code, 2);
}

}  // namespace
}  // namespace headroom
