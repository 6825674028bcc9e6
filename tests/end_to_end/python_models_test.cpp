// Modules as users bring them (python_models/models.py): each is trained, killed in the middle of a step, resumed, and
// ends bit-equal.
#include "python_trial.hpp"

namespace headroom {
namespace {

struct UsersModel {
  const char* name;
  const char* options;  // lines of [model.options]
};

void PrintTo(const UsersModel& model, std::ostream* out) { *out << model.name; }

class PythonModels : public PythonTrial, public testing::WithParamInterface<UsersModel> {};

TEST_P(PythonModels, KilledAndResumedTheyEndBitEqual) {
  write_trial(HEADROOM_SOURCE_DIR "/tests/end_to_end/python_models/models.py", GetParam().options);
  expect_bit_equal_after_kill({"train.epochs=1"});
}

INSTANTIATE_TEST_SUITE_P(
    All, PythonModels,
    testing::Values(UsersModel{"ResNetBatchNorm", "class = \"ResNet\"\nloss = \"mse\"\n"},
                    UsersModel{"ResNetGroupNorm", "class = \"ResNet\"\nargs = { norm = \"group\" }\nloss = \"mse\"\n"},
                    UsersModel{"Gpt", "class = \"Gpt\"\nloss = \"mse\"\n"},
                    UsersModel{"UNet", "class = \"UNet\"\nloss = \"huber\"\n"},
                    UsersModel{"Lstm", "class = \"Lstm\"\nloss = \"mae\"\n"},
                    UsersModel{"Vae", "class = \"Vae\"\nloss = \"vae_loss\"\n"},
                    UsersModel{"Siamese", "class = \"Siamese\"\nloss = \"mse\"\n"},
                    UsersModel{"TiedWeights", "class = \"Gpt\"\nargs = { tied = true }\nloss = \"mse\"\n"},
                    UsersModel{"Checkpointed", "class = \"Gpt\"\nargs = { recomputed = true }\nloss = \"mse\"\n"},
                    UsersModel{"Compiled", "class = \"Plain\"\ncompile = true\nloss = \"pausing_loss\"\n"}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace headroom
