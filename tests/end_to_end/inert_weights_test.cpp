// Weights that nothing computes with lie on the disk during a run, and in its checkpoints as ever.
#include <map>

#include "record/safetensors.hpp"
#include "small_policy.hpp"
#include "trial_run.hpp"

namespace headroom {
namespace {

// An act_policy with 27 MiB of them: all decoder layers but the first.
class InertWeights : public TrialRun {
 protected:
  void SetUp() override {
    TrialRun::SetUp();
    write_text(folder_ / "trial.toml", small_policy);
  }
  static std::vector<std::string> with(std::vector<std::string> more) {
    more.insert(more.end(), {"model.options.hidden_dim=256", "model.options.dim_feedforward=1600",
                             "model.options.dec_layers=6", "checkpoint.keep=9"});
    return more;
  }
  // The bytes of the layers that nothing reads, by name.
  std::map<std::string, std::string> inert_weights(const std::string& out) const {
    std::map<std::string, std::string> found;
    const SafetensorsFile file(run_folder(out) / "checkpoints" / "last" / "model.safetensors");
    for (const TensorBytes& tensor : file.tensors()) {
      const std::string layers = "transformer.decoder.layers.";
      if (tensor.name.starts_with(layers) && !tensor.name.starts_with(layers + "0."))
        found[tensor.name] = {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
    }
    return found;
  }
};

TEST_F(InertWeights, AreTheSameInEveryCheckpoint) {
  const std::string said = "of weights that nothing computes with are kept on the disk";
  const Finished whole = run(with({"train.epochs=2"}), "whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  if (whole.err.find("no local disk takes them") != std::string::npos) GTEST_SKIP() << "no local disk takes them here";
  EXPECT_NE(whole.err.find(said), std::string::npos) << whole.err;
  ASSERT_EQ(run(with({"train.epochs=1"}), "half").exit_code, 0);
  const auto before = inert_weights("half");
  EXPECT_EQ(before.size(), 5 * 18);

  const Finished resumed = headroom({"run", "--resume", run_folder("half").string(), "--set", "train.epochs=2"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find(said), std::string::npos) << resumed.err;
  EXPECT_TRUE(inert_weights("half") == before);
  for (const char* file : {"model.safetensors", "state.safetensors"}) {
    const std::filesystem::path last = std::filesystem::path("checkpoints") / "last" / file;
    EXPECT_TRUE(read_text(run_folder("half") / last) == read_text(run_folder("whole") / last)) << file;
  }
  EXPECT_EQ(evaluated(headroom({"evaluate", run_folder("half").string(), "--split", "val", "--json"})),
            evaluated(headroom({"evaluate", run_folder("whole").string(), "--split", "val", "--json"})));
}

}  // namespace
}  // namespace headroom
