#include "train/run_data.hpp"

#include "config/literals.hpp"
#include "config/rescue.hpp"
#include "data/services.hpp"
#include "memory/cores.hpp"
#include "plugins/cuda_libraries.hpp"
#include "plugins/model_files.hpp"
#include "ranks/group.hpp"
#include "train/page_lock.hpp"
#include "train/recompute.hpp"

namespace headroom {

namespace {

at::Device pick_device(const std::string& wanted) {
  if (wanted == "cpu") return at::kCPU;
  if (const std::string why_not = why_no_cuda(); !why_not.empty()) {
    if (wanted == "auto") return at::kCPU;
    throw Error(Exit::bad_input, "experiment.device",
                "'" + wanted + "' was asked for, but " + why_not + ": use \"cpu\" or \"auto\"");
  }
  at::Device device(wanted == "auto" ? "cuda" : wanted);
  // "cuda" is the first one; memory of a device is asked for by its index.
  if (!device.has_index()) device.set_index(0);
  if (device.index() >= torch::cuda::device_count()) {
    throw Error(Exit::bad_input, "experiment.device",
                "'" + wanted + "' was asked for, but there are " + std::to_string(torch::cuda::device_count()) +
                    " CUDA devices");
  }
  return device;
}

Library load_model(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs) {
  Library library = Library::load(find_plugin(experiment.model_plugin, plugin_dirs));
  if (library.model_torch() != nullptr) return library;
  throw Error(Exit::bad_input, "model.plugin", "'" + experiment.model_plugin + "' is not a model plugin");
}

std::shared_ptr<const OptimizerPlugin> load_optimizer(const TrainSection& train,
                                                      const std::vector<std::filesystem::path>& plugin_dirs,
                                                      Session& session) {
  const auto path = find_optimizer(train.optimizer, plugin_dirs);
  if (!path) return nullptr;
  auto optimizer = std::make_shared<const OptimizerPlugin>(Library::load(*path), train, session);
  optimizer->require_precision(train.precision);
  return optimizer;
}

}  // namespace

std::string RunData::resolved_toml() const {
  std::optional<toml::table> data_synth;
  if (synth) data_synth = options_to_toml(synth->table, synth->values);
  // The run folder says what "auto" came to, so that the run can be repeated elsewhere.
  DecidedValues decided = {{"data.shuffle", "\"" + order.name + "\""}};
  if (experiment.data.shuffle == "auto" && order.shuffle != Shuffle::grouped)
    decided["data.grouped.runs"] = decided["data.grouped.run_length"] = "";
  // Left at 0 it is chosen by how the data is stored, which a copy may change.
  if (order.shuffle == Shuffle::grouped) decided["data.grouped.run_length"] = std::to_string(order.grouping.run_length);
  if (optimizer)
    decided["train.optimizer_options"] = literal(options_to_toml(optimizer->table(), optimizer->options()));
  return experiment_to_toml(experiment, options_to_toml(model_table, model_options),
                            options_to_toml(data_table, data_options), data_synth, decided);
}

LoaderOptions RunData::loader_options(bool training, int64_t built_bytes) const {
  LoaderOptions options = OpenedData::loader_options(training, built_bytes, ranks());
  if (experiment.data.pin_memory && device.is_cuda()) options.page_lock = cuda_page_lock().value_or(PageLock());
  return options;
}

bool RunData::evaluates_in_larger_batches() const {
  return experiment.train.micro_batch == 0 && experiment.metrics.mode != "sampled";
}

Ranks RunData::ranks() const { return group != nullptr ? group->ranks() : Ranks(); }

bool RunData::is_elastic() const { return group != nullptr && experiment.train.elastic && group->ranks().elastic; }

RunData prepare_data(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs, bool trains,
                     std::shared_ptr<RankGroup> group) {
  const int here = group != nullptr ? group->ranks().local_count : 1;
  const int threads =
      experiment.experiment.threads > 0 ? experiment.experiment.threads : std::max(1, auto_threads() / here);
  // Before anything computes: the number of threads decides how sums round.
  at::set_num_threads(threads);
  const at::Device device = pick_device(experiment.experiment.device);
  std::optional<DeviceLimit> device_limit;
  if (!device.is_cpu()) device_limit = limit_device_memory(read_device_room(device), experiment.memory.device_limit);

  const Library model_library = load_model(experiment, plugin_dirs);
  ChosenSource source = choose_source(experiment, plugin_dirs);
  const OptionTable model_table = to_option_table(model_library.model_torch()->options);
  const std::string model_text = "model '" + model_library.id() + "'";
  OptionValues model_options = check_options(model_table, &experiment.model_options, "model.options", model_text);
  if (experiment.rescue) {
    check_rung_options(model_table, *experiment.rescue, "model.options", model_text);
    check_rung_options(source.table, *experiment.rescue, "data.options", "datasource '" + source.library.id() + "'");
  }
  // What the experiment file gets wrong is told before data is written or opened.
  check_recompute(experiment.memory.recompute, model_library);

  std::shared_ptr<Session> session = make_session(experiment.data);
  auto model_files = model_file_digests(model_library, model_options, *session);
  auto optimizer = trains ? load_optimizer(experiment.train, plugin_dirs, *session) : nullptr;
  if (experiment.rescue && optimizer) {
    check_rung_options(optimizer->table(), *experiment.rescue, "train.optimizer_options",
                       "optimizer '" + optimizer->id() + "'");
  }

  OpenedData opened = open_data(experiment, std::move(source), std::move(session));
  divide_caches(opened, here);
  return {std::move(opened),    device,          std::move(device_limit),  threads,
          model_library,        model_table,     std::move(model_options), std::move(model_files),
          std::move(optimizer), std::move(group)};
}

}  // namespace headroom
