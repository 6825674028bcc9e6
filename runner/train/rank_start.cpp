#include "train/rank_start.hpp"

#include <fstream>
#include <iterator>

#include "config/digest.hpp"
#include "ranks/agreement.hpp"
#include "record/postmortem.hpp"

namespace headroom {

namespace {

// Files lie elsewhere on other machines; what they hold is told by itself.
std::string experiment_digest(const RunData& data) {
  const Experiment& experiment = data.experiment;
  return Digest()
      .add(experiment_to_toml(experiment, {}, {}, {}, {}))
      .add(options_without_paths(data.model_table, data.model_options))
      .add(options_without_paths(data.data_table, data.data_options))
      .hex();
}

std::string file_digest(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return Digest().add(std::string(std::istreambuf_iterator<char>(stream), {})).hex();
}

std::string weights_digest(Model& model) {
  Digest digest;
  for (const Parameter& parameter : model.parameters()) {
    const at::Tensor tensor = parameter.tensor->detach().cpu().contiguous();
    digest.add({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
  }
  return digest.hex();
}

[[noreturn]] void refuse(const Ranks& ranks, const std::string& why, const std::string& other_way = "") {
  throw Error(Exit::bad_input, "ranks",
              "the run was started as " + std::to_string(ranks.count) + " processes by " + ranks.launcher + ", and " +
                  why + ": " + other_way + "run it as one process");
}

}  // namespace

RunData prepare_data_of_ranks(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs,
                              std::shared_ptr<RankGroup> group) {
  if (group == nullptr) return prepare_data(experiment, plugin_dirs);
  RunData data = group->first_goes_first([&] { return prepare_data(experiment, plugin_dirs, /*trains=*/true, group); });
  require_agreement(*group, {{"Headroom's version", HEADROOM_VERSION},
                             {"LibTorch's version", TORCH_VERSION},
                             {"the experiment", experiment_digest(data)},
                             {"the model plugin", file_digest(data.model_library.path())},
                             {"the datasource plugin", file_digest(data.source_library.path())},
                             {"the data", data.content_id}});
  return data;
}

void require_divisible(const Setup& setup) {
  if (setup.data.group == nullptr) return;
  const Ranks ranks = setup.data.ranks();
  const uint32_t capabilities = setup.model->capabilities();
  const std::string model = "model '" + setup.model->id() + "' ";
  if (capabilities & HR_COUPLES_SAMPLES) refuse(ranks, model + "couples the samples of a batch");
  if (capabilities & HR_RNG_GENERATOR) refuse(ranks, model + "draws from the sequential generator");
  if (setup.data.experiment.metrics.mode == "full")
    refuse(ranks, "metrics.mode = \"full\" keeps outputs in one process", "use \"online\", or ");
  if (setup.device.is_cuda())
    refuse(ranks, "several processes compute on the CPU alone", "set experiment.device = \"cpu\", or ");
}

void require_same_weights(const Setup& setup) {
  if (setup.data.group == nullptr) return;
  require_agreement(*setup.data.group, {{"the model's first weights", weights_digest(*setup.model)}});
}

RunFolder make_run_folder(const std::filesystem::path& out, const RunData& data) {
  const std::string& name = data.experiment.experiment.name;
  if (data.group == nullptr) return RunFolder::create(out, name);
  if (!data.group->is_first()) return RunFolder::shared(data.group->from_first(""));
  RunFolder folder = RunFolder::create(out, name);
  (void)data.group->from_first(std::filesystem::absolute(folder.path()).string());
  return folder;
}

std::filesystem::path folder_of_rank(const RunFolder& folder, const Ranks& ranks) {
  if (ranks.is_first()) return folder.path();
  const std::filesystem::path own = rank_folder(folder.path(), ranks.rank);
  std::error_code error;
  std::filesystem::create_directories(own, error);  // the black box says what is wrong
  return own;
}

}  // namespace headroom
