// A model plugin under test: made of option text and fields, as the trainer makes it, and looked into by name.
#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "config/options.hpp"
#include "plugins/host.hpp"
#include "plugins/torch_model.hpp"
#include "relative_error.hpp"

namespace headroom {

// As the trainer's main does before it loads the first plugin.
inline const bool torch_tag_is_set = (set_host_torch_tag(host_torch_tag()), true);

inline std::filesystem::path plugin_file(const std::string& plugin) {
  return std::filesystem::path(HEADROOM_PLUGIN_DIR) / (plugin + ".so");
}

// `options` is the text below [model.options].
inline std::unique_ptr<Model> make_model(const std::string& plugin, const std::string& options,
                                         const std::vector<Field>& fields, uint64_t seed) {
  const Library library = Library::load(plugin_file(plugin));
  const toml::table table = toml::parse(options);
  const OptionValues values =
      check_options(to_option_table(library.model_torch()->options), &table, "model.options", plugin);
  return std::make_unique<Model>(library, values, fields, seed);
}

// A field whose axes have no names.
inline Field plain_field(std::string name, DLDataType dtype, std::vector<int64_t> shape) {
  Field field;
  field.name = std::move(name);
  field.dtype = dtype;
  field.axes.resize(shape.size());
  field.shape = std::move(shape);
  return field;
}

inline constexpr DLDataType kFloat32{kDLFloat, 32, 1}, kUInt8{kDLUInt, 8, 1};

inline at::Tensor& parameter(Model& model, const std::string& name) {
  for (Parameter& found : model.parameters()) {
    if (found.name == name) return *found.tensor;
  }
  throw std::out_of_range("no parameter " + name);
}

inline const at::Tensor& output(const Model& model, const StepResult& result, const std::string& name) {
  for (std::size_t i = 0; i < model.outputs().size(); ++i) {
    if (model.outputs()[i].name == name) return result.outputs[i];
  }
  throw std::out_of_range("no output " + name);
}

// A metric's mean.
inline double metric(const Model& model, const StepResult& result, const std::string& name) {
  for (std::size_t i = 0; i < model.metrics().size(); ++i) {
    const at::Tensor row = result.metrics[static_cast<int64_t>(i)];
    if (model.metrics()[i].name == name) return (row[0] / row[1]).item<double>();
  }
  throw std::out_of_range("no metric " + name);
}

}  // namespace headroom
