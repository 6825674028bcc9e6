#include "plugins/describe.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace headroom {

namespace {

nlohmann::json options(const hr_options* table) { return option_table_to_json(to_option_table(table)); }

}  // namespace

std::vector<std::string> capability_names(uint32_t capabilities) {
  static constexpr std::pair<uint32_t, const char*> kNames[] = {{HR_COUPLES_SAMPLES, "couples_samples"},
                                                                {HR_MODEL_FP64, "fp64"},
                                                                {HR_MODEL_BF16, "bf16"},
                                                                {HR_MODEL_FP16, "fp16"},
                                                                {HR_RNG_KEYED, "rng_keyed"},
                                                                {HR_RNG_GENERATOR, "rng_generator"}};
  std::vector<std::string> names;
  for (const auto& [flag, name] : kNames) {
    if ((capabilities & flag) != 0) names.emplace_back(name);
  }
  return names;
}

nlohmann::json describe_plugin(const Library& library) {
  const hr_plugin& plugin = library.plugin();
  nlohmann::json interfaces = nlohmann::json::object();
  if (const auto* model = library.model_torch()) {
    interfaces[HR_MODEL_TORCH] = {{"options", options(model->options)},
                                  {"capabilities", capability_names(model->capabilities)},
                                  {"recompute_kinds", library.recompute_kinds()}};
  }
  if (const auto* source = library.datasource()) interfaces[HR_DATASOURCE] = {{"options", options(source->options)}};
  if (const auto* synth = library.synth()) interfaces[HR_SYNTH] = {{"options", options(synth->options)}};
  if (const auto* convert = library.convert()) interfaces[HR_CONVERT] = {{"options", options(convert->options)}};
  if (const auto* rule = library.optimizer()) interfaces[HR_OPTIMIZER] = {{"options", options(rule->options)}};
  if (library.state() != nullptr) interfaces[HR_STATE] = nlohmann::json::object();
  if (library.predict() != nullptr) interfaces[HR_PREDICT] = nlohmann::json::object();
  if (library.inputs() != nullptr) interfaces[HR_INPUTS] = nlohmann::json::object();
  if (library.classes() != nullptr) interfaces[HR_CLASSES] = nlohmann::json::object();
  if (library.class_names() != nullptr) interfaces[HR_CLASS_NAMES] = nlohmann::json::object();
  if (library.positions() != nullptr) interfaces[HR_POSITIONS] = nlohmann::json::object();
  if (library.gc() != nullptr) interfaces[HR_GC] = nlohmann::json::object();

  nlohmann::json torch_tag = nullptr;
  if (plugin.torch_tag != nullptr) torch_tag = plugin.torch_tag;
  return {{"id", plugin.id},
          {"version", plugin.version},
          {"summary", plugin.summary},
          {"path", library.path().string()},
          {"abi", std::to_string(plugin.abi_major) + "." + std::to_string(plugin.abi_minor)},
          {"min_host_minor", plugin.min_host_minor},
          {"torch_tag", torch_tag},
          {"note", read_note(library.path()).has_value()},
          {"interfaces", interfaces}};
}

}  // namespace headroom
