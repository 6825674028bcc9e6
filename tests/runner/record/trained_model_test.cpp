#include "record/trained_model.hpp"

#include <gmock/gmock.h>
#include <toml++/toml.h>

#include "temporary_folder.hpp"
#include "tensor_values.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TrainedModelTest : public TemporaryFolder {
 protected:
  // A run whose parameter `w` has an average, and whose buffer `count` has none.
  fs::path run(const nlohmann::json& told) {
    const fs::path folder = folder_ / "20261126-000000-abc";
    fs::create_directories(folder);
    write_text(folder / "experiment.toml", R"(
[experiment]
name = "wrist"
seed = 11
[model]
plugin = "net"
[model.options]
width = 16
rate = 0.5
[data]
source = "rows"
[train]
precision = "bf16"
)");
    const float live[] = {1.0F, 2.0F}, average[] = {3.0F, 4.0F};
    const int64_t count[] = {9};
    const uint8_t state[] = {7, 8};
    const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
    const std::vector<TensorBytes> model = {{"w", {kDLFloat, 32, 1}, {2}, bytes(live)},
                                            {"count", {kDLInt, 64, 1}, {1}, bytes(count)}};
    const std::vector<TensorBytes> extra = {{"ema/w", {kDLFloat, 32, 1}, {2}, bytes(average)},
                                            {"exp_avg/w", {kDLFloat, 32, 1}, {2}, bytes(live)},
                                            {"plugin_state", {kDLUInt, 8, 1}, {2}, bytes(state)}};
    nlohmann::json json = {{"normalizer", {{{"field", "x"}, {"mean", {0.1}}, {"std", {2.0}}, {"samples", 5}}}},
                           {"surroundings", {{"identity", "cafe"}, {"content_id", "beef"}}}};
    if (!told.is_null()) json["model"] = told;
    Checkpoints(folder / "checkpoints").save({40, model, extra, json}, /*is_best=*/true);
    return folder;
  }
  static nlohmann::json told() {
    return {{"plugin", "net"}, {"fields", {{{"name", "x"}}}}, {"outputs", {{{"name", "p"}, {"unit", "rad"}}}}};
  }
};

TEST_F(TrainedModelTest, TheFileHasAveragedWeightsAndWhatIsNeededToUseThem) {
  const fs::path out = folder_ / "out.safetensors";
  TrainedModel::of_run(run(told()), "best").write(out);
  const SafetensorsFile file(out);
  EXPECT_EQ(values<float>(file, "w"), (std::vector<float>{3.0F, 4.0F})) << "the average, as evaluate takes it";
  EXPECT_EQ(values<int64_t>(file, "count"), (std::vector<int64_t>{9}));
  EXPECT_EQ(file.find("exp_avg/w"), nullptr);
  const auto& metadata = file.metadata();
  EXPECT_EQ(metadata.at("format"), "pt");
  EXPECT_EQ(metadata.at("model"), "net");
  EXPECT_EQ(metadata.at("precision"), "bf16");
  EXPECT_EQ(metadata.at("seed"), "11");
  const toml::table options = toml::parse(metadata.at("options"));
  EXPECT_EQ(options["width"].value<int64_t>(), 16);
  EXPECT_EQ(options["rate"].value<double>(), 0.5);
  const auto json = [&](const char* key) { return nlohmann::json::parse(metadata.at(key)); };
  EXPECT_EQ(json("fields")[0].at("name"), "x");
  EXPECT_EQ(json("outputs")[0].at("unit"), "rad");
  EXPECT_EQ(json("normalizer")[0].at("mean")[0], 0.1) << "to the bit";
  EXPECT_EQ(json("run").at("id"), "20261126-000000-abc");
  EXPECT_EQ(json("run").at("checkpoint"), "step-00000040") << "not the link";
  EXPECT_EQ(json("run").at("identity"), "cafe");
}

TEST_F(TrainedModelTest, AFileComesBackAsTheRun) {
  const fs::path out = folder_ / "out.safetensors";
  const TrainedModel of_run = TrainedModel::of_run(run(told()), "last");
  of_run.write(out);
  const TrainedModel back = TrainedModel::of_file(out);
  EXPECT_EQ(back.metadata(), of_run.metadata());
  EXPECT_EQ(back.step, 40);
  EXPECT_EQ(back.seed, 11u);
  EXPECT_EQ(as_values<uint8_t>(back.state), (std::vector<uint8_t>{7, 8}));
  ASSERT_EQ(back.weights.size(), 2u) << "the plugin's state is no weight";
  EXPECT_EQ(as_values<float>(back.find("w")->data), (std::vector<float>{3.0F, 4.0F}));
  EXPECT_EQ(back.find("nothing"), nullptr);
}

TEST_F(TrainedModelTest, ACheckpointOfAnEarlierBuildHasNoFields) {
  const TrainedModel model = TrainedModel::of_run(run(nullptr), "best");
  EXPECT_TRUE(model.fields.is_null());
  EXPECT_EQ(model.metadata().at("model"), "net") << "as the experiment names it";
}

TEST_F(TrainedModelTest, OtherFilesAreRefused) {
  const fs::path out = folder_ / "other.safetensors";
  write_safetensors(out, {}, {{"format", "pt"}});
  EXPECT_THAT(sentence_of([&] { TrainedModel::of_file(out); }),
              HasSubstr("other.safetensors: its metadata has no 'headroom': give a run's folder"));
  write_safetensors(out, {}, {{"headroom", "2"}});
  EXPECT_THAT(sentence_of([&] { TrainedModel::of_file(out); }),
              HasSubstr("has format 2; this Headroom reads format 1"));
  auto metadata = TrainedModel::of_run(run(told()), "best").metadata();
  metadata["seed"] = "often";
  write_safetensors(out, {}, metadata);
  EXPECT_THAT(sentence_of([&] { TrainedModel::of_file(out); }), HasSubstr("its metadata is damaged"));
  EXPECT_THAT(sentence_of([&] { TrainedModel::of_run(folder_, "best"); }), HasSubstr("is not a run's folder"));
}

}  // namespace
}  // namespace headroom
