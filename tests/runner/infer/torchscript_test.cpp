#include "infer/torchscript.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include "../record/temporary_folder.hpp"
#include "plugins/host.hpp"
#include "trained_model.hpp"

namespace headroom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TorchScript : public TemporaryFolder {
 protected:
  WrittenScript write(const std::string& mistake = "none") {
    set_host_torch_tag(host_torch_tag());
    const TrainedModel trained = predicting(mistake);
    Inference inference(trained, Library::load(HEADROOM_TEST_PLUGIN_DIR "/predicting_model.so"), at::kCPU);
    const auto trial = [](const at::Tensor& x) { return ScriptTrial{"made-up samples", {x, at::Tensor()}}; };
    const std::vector<ScriptTrial> trials = {trial(at::ones({1, 4, 3})), trial(-at::ones({1, 4, 3})),
                                             trial(values(1) + 5), trial(values(3))};
    return write_torchscript(inference, trained, trials, file_);
  }
  static at::Tensor values(int64_t samples) { return at::arange(samples * 12, at::kFloat).view({samples, 4, 3}) / 5; }

  std::filesystem::path file_ = "unset";
  void SetUp() override {
    TemporaryFolder::SetUp();
    file_ = folder_ / "model.pt";
  }
};

TEST_F(TorchScript, AProgramOfItsOwnGivesWhatTheModelPredicts) {
  const WrittenScript written = write();
  EXPECT_THAT(written.arguments, ElementsAre("x"));
  EXPECT_THAT(written.outputs, ElementsAre("prediction"));
  EXPECT_TRUE(written.any_count);
  EXPECT_LE(written.largest_difference, 1e-5);
  torch::jit::ExtraFilesMap extra{{"headroom.json", ""}};
  torch::jit::Module program = torch::jit::load(file_.string(), at::Device(at::kCPU), extra);
  const at::Tensor x = values(5);
  const at::Tensor given = program.forward({x}).toTensor();
  ASSERT_EQ(given.sizes(), at::IntArrayRef({5, 4, 2}));
  for (int64_t sample = 0; sample < 5; ++sample) {
    std::vector<double> measured;
    for (int64_t c = 0; c < 3; ++c) measured.push_back(x[sample][2][c].item<double>());
    const std::vector<double> expected = predicted(measured);
    EXPECT_NEAR(given[sample][2][0].item<double>(), expected[0], 1e-4);
    EXPECT_NEAR(given[sample][2][1].item<double>(), expected[1], 1e-4);
  }
  const auto facts = nlohmann::json::parse(extra["headroom.json"]);
  EXPECT_EQ(facts.at("model"), "predicting_model");
  EXPECT_EQ(facts.at("samples"), "any");
  EXPECT_EQ(facts.at("inputs")[0].at("unit"), "V");
  EXPECT_EQ(facts.at("gives")[0].at("measured_as"), "y");
}

TEST_F(TorchScript, ACountThatIsBurntInLetsOneSampleThroughAndRefusesMore) {
  EXPECT_FALSE(write("burns_in_count").any_count);
  torch::jit::Module program = torch::jit::load(file_.string(), at::Device(at::kCPU));
  EXPECT_EQ(program.forward({values(1)}).toTensor().sizes(), at::IntArrayRef({1, 4, 2}));
  EXPECT_ANY_THROW(program.forward({values(2)}));
}

TEST_F(TorchScript, AnOutputThatIsNoNumberIsRefusedWhateverTheNextOneIs) {
  EXPECT_THAT(sentence_of([&] { write("gives_nan"); }), HasSubstr("its trace gives something else"));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(TorchScript, ATraceThatDisagreesIsRefusedAndLeavesNoFile) {
  const std::string sentence = sentence_of([&] { write("decides_by_values"); });
  EXPECT_THAT(sentence, HasSubstr("model 'predicting_model' cannot be written as TorchScript: on made-up samples its "
                                  "trace is off by"));
  EXPECT_THAT(sentence, HasSubstr("export --format safetensors"));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

}  // namespace
}  // namespace headroom
