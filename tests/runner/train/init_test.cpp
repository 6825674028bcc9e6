#include "train/init.hpp"

#include <ATen/DLConvertor.h>
#include <gtest/gtest.h>

#include "record/safetensors.hpp"
#include "trial_setup.hpp"

namespace headroom {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;

std::filesystem::path write(const std::filesystem::path& path, const Named& tensors) {
  std::vector<TensorBytes> bytes;
  for (const auto& [name, tensor] : tensors) {
    bytes.push_back({name,
                     at::getDLDataType(tensor),
                     tensor.sizes().vec(),
                     {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
  }
  write_safetensors(path, bytes);
  return path;
}

Named all_tensors(const std::string& prefix = "") {
  return {{prefix + "hidden.weight", at::full({8, 3}, 0.25)},
          {prefix + "hidden.bias", at::full({8}, 0.5)},
          {prefix + "head.weight", at::full({1, 8}, 0.75)},
          {prefix + "head.bias", at::full({1}, 1.5)},
          {prefix + "seen", at::full({1}, 7.0)}};
}

const at::Tensor& tensor_of(const Setup& setup, const std::string& name) {
  for (const Parameter& parameter : setup.model->parameters()) {
    if (parameter.name == name) return *parameter.tensor;
  }
  throw std::out_of_range(name);
}

TEST(Init, TakesEveryTensorAndSaysSo) {
  TrialSetup trial;
  const auto file = write(trial.folder() / "weights.safetensors", all_tensors());
  EXPECT_EQ(initialise_from({.from = file, .map = {}, .ignore = {}}, *trial->model),
            "5 tensors from " + file.string() + ", 0 ignored, 0 in the file unused");
  EXPECT_TRUE(tensor_of(*trial, "hidden.weight").equal(at::full({8, 3}, 0.25)));
  EXPECT_TRUE(tensor_of(*trial, "seen").equal(at::full({1}, 7.0)));
  EXPECT_TRUE(tensor_of(*trial, "hidden.weight").is_leaf());
}

TEST(Init, AFolderMeansItsModelFile) {
  TrialSetup trial;
  std::filesystem::create_directory(trial.folder() / "step-1");
  write(trial.folder() / "step-1/model.safetensors", all_tensors());
  initialise_from({.from = trial.folder() / "step-1", .map = {}, .ignore = {}}, *trial->model);
  EXPECT_TRUE(tensor_of(*trial, "head.bias").equal(at::full({1}, 1.5)));
}

TEST(Init, MapsPrefixesAndCountsWhatIsLeftOver) {
  TrialSetup trial;
  Named stored = all_tensors("network.");
  stored.emplace_back("optimizer.step", at::zeros({}));
  const auto file = write(trial.folder() / "weights.safetensors", stored);
  EXPECT_EQ(initialise_from({.from = file, .map = {{"network.", ""}}, .ignore = {}}, *trial->model),
            "5 tensors from " + file.string() + ", 0 ignored, 1 in the file unused");
}

TEST(Init, IgnoredTensorsKeepTheirFreshWeights) {
  TrialSetup trial;
  const at::Tensor fresh = tensor_of(*trial, "head.weight").detach().clone();
  const auto file = write(trial.folder() / "weights.safetensors", all_tensors());
  EXPECT_EQ(initialise_from({.from = file, .map = {}, .ignore = {"head.*"}}, *trial->model),
            "3 tensors from " + file.string() + ", 2 ignored, 2 in the file unused");
  EXPECT_TRUE(tensor_of(*trial, "head.weight").equal(fresh));
  EXPECT_TRUE(tensor_of(*trial, "hidden.bias").equal(at::full({8}, 0.5)));
}

TEST(Init, ConvertsToTheRunsPrecision) {
  TrialSetup trial({"train.precision=fp64"});
  const auto file = write(trial.folder() / "weights.safetensors", all_tensors());
  initialise_from({.from = file, .map = {}, .ignore = {}}, *trial->model);
  EXPECT_TRUE(tensor_of(*trial, "hidden.weight").equal(at::full({8, 3}, 0.25, at::kDouble)));
}

TEST(Init, MissingOrMisshapenTensorsAreNamed) {
  TrialSetup trial;
  Named stored = all_tensors();
  stored.erase(stored.begin() + 1);      // hidden.bias
  stored[0].second = at::zeros({3, 8});  // hidden.weight, transposed
  const auto file = write(trial.folder() / "weights.safetensors", stored);
  EXPECT_EQ(sentence_of([&] { initialise_from({.from = file, .map = {}, .ignore = {}}, *trial->model); }),
            "[init] " + file.string() +
                ": 3 tensors of the model matched; 2 were not found with their shape ('hidden.weight', 'hidden.bias'): "
                "rename them with "
                "init.map or list them in init.ignore");
}

TEST(Init, NothingInCommonIsAnErrorThatListsFiveNames) {
  TrialSetup trial;
  const auto file = write(trial.folder() / "weights.safetensors", {{"other", at::zeros({1})}});
  EXPECT_EQ(sentence_of([&] { initialise_from({.from = file, .map = {}, .ignore = {}}, *trial->model); }),
            "[init] " + file.string() +
                ": 0 tensors of the model matched; 5 were not found with their shape ('hidden.weight', 'hidden.bias', "
                "'head.weight', "
                "'head.bias', 'seen'): rename them with init.map or list them in init.ignore");
}

TEST(Init, AnErrorLeavesTheModelAsItWas) {
  TrialSetup trial;
  const at::Tensor fresh = tensor_of(*trial, "head.weight").detach().clone();
  Named stored = all_tensors();
  stored.pop_back();
  const auto file = write(trial.folder() / "weights.safetensors", stored);
  EXPECT_NE(sentence_of([&] { initialise_from({.from = file, .map = {}, .ignore = {}}, *trial->model); }), "");
  EXPECT_TRUE(tensor_of(*trial, "head.weight").equal(fresh));
}

TEST(Init, AFileThatIsMissingIsNamed) {
  TrialSetup trial;
  const auto file = trial.folder() / "nowhere.safetensors";
  EXPECT_NE(
      sentence_of([&] { initialise_from({.from = file, .map = {}, .ignore = {}}, *trial->model); }).find(file.string()),
      std::string::npos);
}

// The run's identity when it starts from these weights.
std::string identity(TrialSetup& trial, const InitSection& init) {
  return Setup(trial->data, start_id(init)).identity();
}

TEST(InitIdentity, IsTheContentsOfTheFileNotItsPath) {
  TrialSetup trial;
  std::filesystem::create_directory(trial.folder() / "step-1");
  const auto file = write(trial.folder() / "weights.safetensors", all_tensors());
  write(trial.folder() / "step-1/model.safetensors", all_tensors());
  Named other = all_tensors();
  other[1].second = at::full({8}, 0.625);
  const auto changed = write(trial.folder() / "changed.safetensors", other);

  const std::string fresh = identity(trial, {}), ours = identity(trial, {.from = file, .map = {}, .ignore = {}});
  EXPECT_NE(ours, fresh);
  EXPECT_EQ(ours, identity(trial, {.from = trial.folder() / "step-1", .map = {}, .ignore = {}}));
  EXPECT_NE(ours, identity(trial, {.from = changed, .map = {}, .ignore = {}}));
  other[1].second = all_tensors()[1].second.view({4, 2});
  write(changed, other);
  EXPECT_NE(ours, identity(trial, {.from = changed, .map = {}, .ignore = {}}));
}

TEST(InitIdentity, HasWhatIsMappedAndIgnored) {
  TrialSetup trial;
  const auto file = write(trial.folder() / "weights.safetensors", all_tensors());
  const std::string ours = identity(trial, {.from = file, .map = {}, .ignore = {}}),
                    mapped = identity(trial, {.from = file, .map = {{"a", "b"}}, .ignore = {}});
  EXPECT_NE(mapped, ours);
  EXPECT_NE(mapped, identity(trial, {.from = file, .map = {}, .ignore = {"a", "b"}}));
  EXPECT_NE(ours, identity(trial, {.from = file, .map = {}, .ignore = {"head.*"}}));
  EXPECT_EQ(identity(trial, {}), identity(trial, {.from = "", .map = {{"a", "b"}}, .ignore = {"head.*"}}));
}

}  // namespace
}  // namespace headroom
