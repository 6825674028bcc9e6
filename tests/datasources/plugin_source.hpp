// A datasource through its plugin's own boundary: opened with TOML options, samples read as bytes by field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../runner/record/temporary_folder.hpp"
#include "../runner/record/tensor_values.hpp"
#include "config/options.hpp"
#include "data/services.hpp"
#include "error.hpp"
#include "plugins/library.hpp"
#include "plugins/source.hpp"

namespace headroom {

inline Library load_plugin(const std::string& name) {
  register_data_services();
  return Library::load(std::filesystem::path(HEADROOM_PLUGIN_DIR) / (name + ".so"));
}

// `options`: further keys, as TOML.
inline std::shared_ptr<const Source> open_source(const Library& plugin, const std::filesystem::path& path,
                                                 const std::string& options) {
  toml::table table = toml::parse(options);
  table.insert("path", path.string());
  const hr_options* native = plugin.datasource()->options;
  return Source::open(plugin, check_options(to_option_table(native), &table, "data.options", "the data source"));
}

using Sample = std::map<std::string, std::vector<std::byte>>;

template <class T>
std::vector<T> values(const Sample& sample, const std::string& field) {
  return as_values<T>(sample.at(field));
}

// Slots start out dirty, so that what read() leaves unwritten shows. `wanted` tells which fields have a slot.
inline std::vector<Sample> read_fields(
    Reader& reader, const Source& source, uint32_t split, const std::vector<uint64_t>& index,
    const std::vector<uint64_t>& key, bool augment,
    const std::function<bool(const std::string&)>& wanted = [](const std::string&) { return true; }) {
  const auto& fields = source.fields();
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<DLTensor> slots;
  for (const Field& field : fields) {
    memory.emplace_back(index.size() * static_cast<size_t>(field.bytes()), std::byte{0xAB});
    shapes.push_back(field.shape);
    shapes.back().insert(shapes.back().begin(), static_cast<int64_t>(index.size()));
  }
  for (size_t f = 0; f < fields.size(); ++f) {
    slots.push_back({wanted(fields[f].name) ? memory[f].data() : nullptr,
                     {kDLCPU, 0},
                     static_cast<int32_t>(shapes[f].size()),
                     fields[f].dtype,
                     shapes[f].data(),
                     nullptr,
                     0});
  }
  reader.read(split, index, key, augment, slots);
  std::vector<Sample> samples(index.size());
  for (size_t f = 0; f < fields.size(); ++f) {
    const auto bytes = static_cast<std::ptrdiff_t>(fields[f].bytes());
    for (size_t i = 0; i < index.size(); ++i) {
      const auto first = memory[f].begin() + static_cast<std::ptrdiff_t>(i) * bytes;
      if (wanted(fields[f].name)) samples[i][fields[f].name].assign(first, first + bytes);
    }
  }
  return samples;
}

// The sentence of `call`'s Error with "DIR" for `folder`, and its exit code; "" when nothing is thrown.
inline std::string sentence_of(const std::filesystem::path& folder, const std::function<void()>& call,
                               Exit* code = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (code != nullptr) *code = error.exit_code();
    std::string text = error.what();
    for (size_t at; (at = text.find(folder.string())) != std::string::npos;)
      text.replace(at, folder.string().size(), "DIR");
    return text;
  }
  return "";
}

inline std::string sentence_of(const std::filesystem::path& folder, Exit expected, const std::function<void()>& call) {
  Exit code = expected;
  std::string sentence = sentence_of(folder, call, &code);
  EXPECT_EQ(code, expected) << sentence;
  return sentence;
}

}  // namespace headroom
