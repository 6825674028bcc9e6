#include "train/rank_start.hpp"

#include <ATen/Version.h>

#include "config/digest.hpp"
#include "ranks/agreement.hpp"
#include "ranks/lost_note.hpp"
#include "record/postmortem.hpp"

namespace headroom {

namespace {

std::string weights_digest(Model& model) {
  Digest digest;
  for (const Parameter& parameter : model.parameters()) {
    const at::Tensor tensor = parameter.tensor->detach().cpu().contiguous();
    digest.add({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
  }
  return digest.hex();
}

[[noreturn]] void refuse(RankGroup& group, const std::string& why, const std::string& other_way = "") {
  const Ranks& ranks = group.ranks();
  group.leave();
  throw Error(Exit::bad_input, "ranks",
              "the run was started as " + std::to_string(ranks.count) + " processes by " + ranks.launcher + ", and " +
                  why + ": " + other_way + "run it as one process");
}

}  // namespace

RunData prepare_data_of_ranks(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs,
                              std::shared_ptr<RankGroup> group) {
  if (group == nullptr) return prepare_data(experiment, plugin_dirs);
  RunData data = group->first_goes_first([&] { return prepare_data(experiment, plugin_dirs, /*trains=*/true, group); });
  require_agreement(*group,
                    {{"Headroom's version", HEADROOM_VERSION},
                     {"LibTorch's version", TORCH_VERSION},
                     // Every rank takes the step by itself: sums of other vectors or threads round in another way.
                     {"LibTorch's vector instructions (ATEN_CPU_CAPABILITY)", at::get_cpu_capability()},
                     {"the number of threads (experiment.threads)", std::to_string(data.threads)},
                     {"the experiment", experiment_to_toml(data.experiment, {}, {}, {})},
                     // Files lie elsewhere on other machines; what they hold is told by itself.
                     {"the options of the model", options_without_paths(data.model_table, data.model_options)},
                     {"the options of the data",
                      options_without_paths(data.data_table, data.data_options, data.source_library.cost_options())},
                     {"the model plugin", data.model_library.build()},
                     {"the datasource plugin", data.source_library.build()},
                     {"the optimizer plugin", data.optimizer ? data.optimizer->library().build() : "none"},
                     {"the data", data.content_id}});
  return data;
}

void require_divisible(const Setup& setup) {
  if (setup.data.group == nullptr) return;
  RankGroup& group = *setup.data.group;
  const uint32_t capabilities = setup.model->capabilities();
  const std::string model = "model '" + setup.model->id() + "' ";
  if (capabilities & HR_COUPLES_SAMPLES) refuse(group, model + "couples the samples of a batch");
  if (capabilities & HR_RNG_GENERATOR) refuse(group, model + "draws from the sequential generator");
  if (setup.data.experiment.metrics.mode == "full")
    refuse(group, "metrics.mode = \"full\" keeps outputs in one process", "use \"online\", or ");
  if (setup.data.experiment.train.elastic && !group.ranks().elastic)
    refuse(group, "train.elastic = true is for those that headroom run --nproc starts on one machine",
           "start it so, set train.elastic = false, or ");
  if (setup.device.is_cuda())
    refuse(group, "several processes compute on the CPU alone", "set experiment.device = \"cpu\", or ");
}

void require_same_weights(const Setup& setup) {
  if (setup.data.group == nullptr) return;
  require_agreement(*setup.data.group, {{"the model's first weights", weights_digest(*setup.model)}});
}

std::vector<std::string> rank_lines(const Setup& setup, bool resumed) {
  if (setup.data.group == nullptr || setup.data.ranks().comes_back) return {};
  const RankGroup& group = *setup.data.group;
  const Ranks& ranks = group.ranks();
  std::string line = "ranks: " + std::to_string(ranks.count) + " processes share each window, by " + ranks.launcher;
  for (int rank = 0; rank < ranks.count; ++rank) {
    if (rank == 0 || group.host_of(rank) != group.host_of(rank - 1))
      line += (rank == 0 ? ": from rank " : ", from rank ") + std::to_string(rank) + " on host " + group.host_of(rank);
  }
  std::vector<std::string> lines = {line};
  if (!resumed) lines.emplace_back("ranks: nothing is planned; each process finds the micro-batch that fits");
  if (setup.data.is_elastic())
    lines.emplace_back("ranks: where one is killed the others go on (train.elastic), if at least " +
                       std::to_string(setup.data.experiment.train.elastic_min) + " are left");
  if (setup.data.experiment.rescue)
    lines.emplace_back("[rescue]: a run of several processes takes no rung where it does not fit");
  return lines;
}

bool speaks_for_all(const RunData& data) {
  return data.group == nullptr || data.group->is_first() || data.group->stands_in();
}

RunFolder make_run_folder(const std::filesystem::path& out, const RunData& data) {
  const std::string& name = data.experiment.experiment.name;
  if (data.group == nullptr) return RunFolder::create(out, name);
  if (!data.group->is_first()) return RunFolder::shared(data.group->from_first(""));
  RunFolder folder = RunFolder::create(out, name);
  (void)data.group->from_first(std::filesystem::absolute(folder.path()).string());
  return folder;
}

std::filesystem::path folder_of_rank(const RunFolder& folder, const RunData& data) {
  const Ranks ranks = data.ranks();
  if (data.group != nullptr) data.group->keep_lost_note_at(lost_note_of(folder.path(), ranks.number()));
  if (ranks.is_first()) return folder.path();
  const std::filesystem::path own = rank_folder(folder.path(), ranks.number());
  std::error_code error;
  std::filesystem::create_directories(own, error);  // the black box says what is wrong
  return own;
}

}  // namespace headroom
