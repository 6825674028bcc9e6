// `headroom parity`'s engine: what it writes, and that everything wrong with its inputs is told at once.
#include "train/parity.hpp"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "plugin_under_test.hpp"
#include "record/safetensors.hpp"

namespace headroom {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

template <class Body>
std::string refusal(Body&& body, Exit code = Exit::bad_input) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), code);
    return error.what();
  }
  return "accepted";
}

class Parity : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("parity-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    options(
        "decoder_hidden_size = 4\ndecoder_num_layers = 1\ntds_stages = [{num_blocks = 0, feature_width = 1, "
        "kernel_width = 1}]\n"
        "[fields.emg]\nsample_rate_hz = 125.0\n[fields.joint_angles]\nunit = \"rad\"\n");
    const auto model = make_model(
        "decoder_hidden_size = 4\ndecoder_num_layers = 1\n"
        "tds_stages = [{num_blocks = 0, feature_width = 1, kernel_width = 1}]",
        recording_);
    for (const Parameter& each : model->parameters()) weights_["model." + each.name] = each.tensor->detach().clone();
    const EmgBatch batch = EmgBatch::random(2, recording_);
    batch_ = {{"in/emg", batch.emg.transpose(1, 2).contiguous()},
              {"in/joint_angles", batch.angles},
              {"in/ok", batch.valid},
              {"in/scale", torch::tensor(1.0)},
              {"in/other", torch::zeros({7})},
              {"out/prediction", torch::zeros({2})}};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void options(const std::string& text) { std::ofstream(folder_ / "o.toml") << "[model.options]\n" << text; }

  static void write(const std::filesystem::path& path, const std::map<std::string, at::Tensor>& tensors) {
    std::vector<TensorBytes> bytes;
    for (const auto& [name, tensor] : tensors) {
      const auto code = static_cast<uint8_t>(tensor.is_floating_point() ? kDLFloat : kDLUInt);
      bytes.push_back({name,
                       {code, static_cast<uint8_t>(8 * tensor.element_size()), 1},
                       tensor.sizes().vec(),
                       {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
    }
    write_safetensors(path, bytes);
  }

  ParityRequest request() {
    write(folder_ / "w.safetensors", weights_);
    write(folder_ / "b.safetensors", batch_);
    ParityRequest request;
    request.model = plugin_file("tds_lstm").string();
    request.options = folder_ / "o.toml";
    request.weights = {TensorSelection::parse((folder_ / "w.safetensors").string() + ":model.")};
    request.batch = TensorSelection::parse((folder_ / "b.safetensors").string() + ":in/");
    request.add_field("valid=ok");
    request.add_transposition("emg=0,2,1");
    request.out = folder_ / "out.safetensors";
    return request;
  }

  const EmgRecording recording_{30, 3, 2, 125.0};
  std::filesystem::path folder_;
  std::map<std::string, at::Tensor> weights_, batch_;
};

TEST_F(Parity, WritesLossOutputsMetricsAndGradients) {
  ParityRequest ask = request();
  ask.gradients = true;
  const ParityResult result = run_parity(ask);
  const SafetensorsFile file(ask.out);
  EXPECT_EQ(file.tensors().size(), result.tensors);
  EXPECT_EQ(result.weight, 2 * 26 * 2);
  for (const char* name :
       {"loss_sum", "weight", "prediction", "target", "mask", "metric/mae", "metric/rmse",
        "grad/decoder.lstm.weight_ih_l0", "grad/network.layers.0.layers.conv1dblock.conv.0.weight"}) {
    EXPECT_NE(file.find(name), nullptr) << name;
  }
  EXPECT_EQ(file.find("prediction")->shape, (std::vector<int64_t>{2, 26, 2}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.safetensors.partial"));
}

TEST_F(Parity, WithoutGradThereAreNoGradients) {
  ParityRequest ask = request();
  run_parity(ask);
  const SafetensorsFile file(ask.out);
  for (const TensorBytes& tensor : file.tensors()) EXPECT_FALSE(tensor.name.starts_with("grad/")) << tensor.name;
}

TEST_F(Parity, DoubleRunsInDouble) {
  ParityRequest ask = request();
  ask.fp64 = ask.train = true;
  run_parity(ask);
  EXPECT_EQ(SafetensorsFile(ask.out).find("prediction")->dtype.bits, 64);
}

TEST_F(Parity, AMaskedBatchHasZeroGradients) {
  batch_["in/ok"].zero_();
  ParityRequest ask = request();
  ask.gradients = true;
  EXPECT_EQ(run_parity(ask).weight, 0.0);
  const SafetensorsFile file(ask.out);
  const auto data = file.find("grad/decoder.mlp_out.1.bias")->data;
  EXPECT_TRUE(std::all_of(data.begin(), data.end(), [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_F(Parity, WeightsAreRenamed) {
  std::map<std::string, at::Tensor> decoder, network;
  for (const auto& [name, tensor] : weights_) {
    const std::string bare = name.substr(6);
    if (bare.starts_with("decoder.")) decoder["head/" + bare.substr(8)] = tensor;
    if (bare.starts_with("network.")) network[bare] = tensor;
  }
  ParityRequest ask = request();
  write(folder_ / "d.safetensors", decoder);
  write(folder_ / "n.safetensors", network);
  ask.weights = {TensorSelection::parse((folder_ / "d.safetensors").string() + ":head/=decoder."),
                 TensorSelection::parse((folder_ / "n.safetensors").string())};
  EXPECT_NO_THROW(run_parity(ask));
}

TEST_F(Parity, EverythingWrongWithTheWeightsIsListed) {
  weights_.erase("model.decoder.mlp_out.1.bias");
  weights_.erase("model.network.layers.0.layers.conv1dblock.norm.bias");
  weights_["model.decoder.extra"] = torch::zeros({1});
  weights_["model.decoder.mlp_out.1.weight"] = torch::zeros({2, 5});
  const std::string told = refusal([&] { run_parity(request()); });
  EXPECT_THAT(told, AllOf(HasSubstr("4 problems:"), HasSubstr("missing weight 'decoder.mlp_out.1.bias' [2]"),
                          HasSubstr("missing weight 'network.layers.0.layers.conv1dblock.norm.bias' [8]"),
                          HasSubstr("unknown weight 'decoder.extra'"),
                          HasSubstr("'decoder.mlp_out.1.weight' is [2, 5]"), HasSubstr("the model's is [2, 4]")));
}

TEST_F(Parity, FieldsThatAreMissingOrMisshapenAreListed) {
  ParityRequest ask = request();
  ask.fields["valid"] = "good";
  ask.transpositions["joint_angles"] = {0, 2};
  ask.add_transposition("emg2=0,1");
  const std::string told = refusal([&] { run_parity(ask); });
  EXPECT_THAT(told, AllOf(HasSubstr("--field valid=good"),
                          HasSubstr("has no such key; it has emg, joint_angles, ok, other, scale"),
                          HasSubstr("--transpose joint_angles: the order must name each of the axes 0 to 2"),
                          HasSubstr("--transpose names 'emg2', which is not a field of the batch")));
  batch_.erase("in/joint_angles");
  EXPECT_THAT(refusal([&] { run_parity(request()); }), HasSubstr("the model needs a field 'joint_angles'"));
}

TEST_F(Parity, OptionsFileIsStrict) {
  const auto told = [&](const std::string& text) {
    options(text);
    return refusal([&] { run_parity(request()); });
  };
  EXPECT_THAT(told("[fields.emg]\nrate = 3\n"),
              AllOf(HasSubstr("o.toml:3:1: unknown key 'fields.emg.rate'"), HasSubstr("unit, sample_rate_hz")));
  EXPECT_THAT(told("[fields.emg]\nsample_rate_hz = \"fast\"\n"),
              HasSubstr("o.toml:3:18: fields.emg.sample_rate_hz must be a number"));
  EXPECT_THAT(told("[train]\nepochs = 1\n"),
              HasSubstr("unknown key 'train'; allowed: [model.options] and [fields.NAME]"));
  EXPECT_THAT(told("x = \n"), HasSubstr("o.toml:2:"));
  EXPECT_THAT(told("decoder_hiden_size = 4\n"), HasSubstr("decoder_hidden_size"));
  EXPECT_THAT(told("[fields.speed]\nunit = \"m/s\"\n"),
              HasSubstr("[fields.speed] describes a field that the batch does not have"));
}

TEST_F(Parity, FilesThatAreNotThere) {
  ParityRequest ask = request();
  ask.options = folder_ / "none.toml";
  EXPECT_THAT(refusal([&] { run_parity(ask); }), HasSubstr("none.toml: there is no such file"));
  ask = request();
  ask.weights = {TensorSelection::parse((folder_ / "none.safetensors").string() + ":w/")};
  EXPECT_THAT(refusal([&] { run_parity(ask); }), HasSubstr("none.safetensors"));
  ask = request();
  ask.out = folder_ / "no" / "folder.safetensors";
  EXPECT_THAT(refusal([&] { run_parity(ask); }, Exit::cannot_write), HasSubstr("folder.safetensors"));
}

TEST(ParityArguments, Selections) {
  const TensorSelection plain = TensorSelection::parse("a.safetensors");
  EXPECT_EQ(plain.file, "a.safetensors");
  EXPECT_EQ(plain.prefix + plain.rename, "");
  const TensorSelection renamed = TensorSelection::parse("a.safetensors:w/=model.");
  EXPECT_EQ(renamed.file, "a.safetensors");
  EXPECT_EQ(renamed.prefix, "w/");
  EXPECT_EQ(renamed.rename, "model.");
  EXPECT_EQ(TensorSelection::parse("a.safetensors:=model.").rename, "model.");
  EXPECT_THAT(refusal([] { TensorSelection::parse(":w/"); }), HasSubstr("names no file"));
}

TEST(ParityArguments, FieldsAndTranspositions) {
  ParityRequest request;
  request.add_field("valid=no_ik_failure");
  EXPECT_EQ(request.fields.at("valid"), "no_ik_failure");
  request.add_transposition("emg=0,2,1");
  EXPECT_EQ(request.transpositions.at("emg"), (std::vector<int64_t>{0, 2, 1}));
  EXPECT_THAT(refusal([&] { request.add_field("valid=again"); }), HasSubstr("'valid' twice"));
  for (const char* wrong : {"valid", "=x", "valid="}) {
    EXPECT_THAT(refusal([&] { request.add_field(wrong); }), HasSubstr("expected NAME=KEY"));
  }
  for (const char* wrong : {"a", "a=", "a=0,", "a=0,x", "a=0;1", "a=0,2,1 "}) {
    EXPECT_THAT(refusal([&] { request.add_transposition(wrong); }), HasSubstr("expected FIELD=0,2,1")) << wrong;
  }
}

}  // namespace
}  // namespace headroom
