// Memory runs out within a module of the user's, in Python: at tensor allocations all over a run, once each.
#include <cstdlib>

#include "whole_run.hpp"

namespace headroom {
namespace {

struct UsersModel {
  const char* name;
  std::vector<std::string> options;
  int64_t quick_stride;
};

void PrintTo(const UsersModel& model, std::ostream* out) { *out << model.name; }

class PythonRun : public WholeRun, public testing::WithParamInterface<UsersModel> {
 protected:
  void SetUp() override {
    if (std::getenv("HEADROOM_TEST_PYTHON") == nullptr)
      GTEST_SKIP() << "HEADROOM_TEST_PYTHON names no Python (a program or an environment) with the torch of this build";
    WholeRun::SetUp();
  }
};

TEST_P(PythonRun, SurvivesAFailureAtAnyAllocation) {
  std::vector<std::string> words = {
      "model.plugin=python",
      "model.options.file=" HEADROOM_SOURCE_DIR "/tests/end_to_end/python_models/models.py",
      "model.options.inputs=[\"x\"]",
      "model.options.target=y",
      "model.options.python=" + std::string(std::getenv("HEADROOM_TEST_PYTHON")),
      "data.source=" HEADROOM_BUILD_DIR "/examples/toy_source.so",
  };
  words.insert(words.end(), GetParam().options.begin(), GetParam().options.end());
  // The campaign too takes every fifth only: the run's six windows are alike.
  every_allocation(words, HEADROOM_EVERY_ALLOCATION ? 5 : GetParam().quick_stride);
}

INSTANTIATE_TEST_SUITE_P(
    All, PythonRun,
    testing::Values(UsersModel{"BatchNorm", {"model.options.class=ResNet", "model.options.loss=mse"}, 401},
                    UsersModel{"Recomputed",
                               {"model.options.class=Gpt", "model.options.args={ recomputed = true }",
                                "model.options.loss=mse"},
                               601},
                    UsersModel{"Recurrent", {"model.options.class=Lstm", "model.options.loss=mae"}, 401},
                    UsersModel{"OwnDraws", {"model.options.class=Vae", "model.options.loss=vae_loss"}, 301},
                    UsersModel{"CalledTwice", {"model.options.class=Siamese", "model.options.loss=mse"}, 301}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace headroom
