#include "plugins/library.hpp"

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <dlfcn.h>
#include <map>
#include <spdlog/spdlog.h>

#include "error.hpp"
#include "headroom/sdk/host.hpp"
#include "mutex.hpp"
#include "plugins/call.hpp"
#include "plugins/session.hpp"

namespace headroom {

namespace {

// A library once opened stays open: autograd nodes and tables made by it outlive every object that could close it.
struct Opened {
  boost::dll::shared_library library;
  const hr_plugin* plugin = nullptr;
  std::string build;
  std::optional<Error> init_failed;  // the first verdict stands: init is called once
};

struct OpenedLibraries {
  Mutex mutex;
  std::map<std::filesystem::path, Opened> by_real_path GUARDED_BY(mutex);
};

OpenedLibraries& opened_libraries() {
  static auto* instance = new OpenedLibraries;
  return *instance;
}

const hr_plugin* open(const std::filesystem::path& path, const std::optional<Note>& note,
                      boost::dll::shared_library& library) {
  std::error_code problem;
  dlerror();  // clears what an earlier failure left
  // Local: two plugins may contain the same symbols. Now: an undefined symbol is an error here, not in the middle of a
  // run.
  try {
    library.load(path, problem, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  } catch (...) {  // out of what it initialises before anybody calls it
    throw Error(Exit::plugin, "plugin",
                path.string() + " cannot be loaded: it threw an exception meanwhile (" + text_of_exception() +
                    "): look for global objects and for registrations such as TORCH_LIBRARY");
  }
  if (problem) {
    const char* reason = dlerror();
    std::string sentence = path.string() + " cannot be loaded: " + (reason != nullptr ? reason : problem.message());
    if (note && (note->flags & HR_PLUGIN_CUDA) != 0)
      sentence += "; the plugin links LibTorch's CUDA libraries, which must be installed";
    throw Error(Exit::plugin, "plugin", sentence);
  }
  if (!library.has(HR_PLUGIN_SYMBOL)) {
    throw Error(Exit::plugin, "plugin",
                path.string() + " is not a Headroom plugin: it does not export " + HR_PLUGIN_SYMBOL +
                    " (build it with headroom_add_plugin)");
  }
  return &library.get<const hr_plugin>(HR_PLUGIN_SYMBOL);
}

void initialise(const hr_plugin& plugin) {
  if (plugin.init == nullptr) return;
  // init belongs to no run: the plugin serves all runs of this process.
  hr_error error = no_error();
  check(call(plugin.id, "init", plugin.init, Session::of_process()->host_for(plugin.id), &error), error, plugin.id,
        "starting the plugin");
}

const hr_plugin* load_once(const std::filesystem::path& path, Opened& entry) {
  // The note first: static constructors of an unsuitable library could already crash, for want of an instruction set
  // say.
  const std::optional<Note> note = read_note(path);
  if (note) require_compatible(*note, path);
  entry.build = read_build(path);
  const hr_plugin* plugin = open(path, note, entry.library);
  // After the plugin's static objects were made: handlers of exit() run in reverse order, so before their destructors.
  refuse_exit_of_plugins();
  require_compatible(read_header(plugin, path), path);
  if (!note) spdlog::info("[plugin] {} carries no note: its header was checked after loading it", path.string());
  try {
    initialise(*plugin);
  } catch (const Error& problem) {
    entry.init_failed = problem;
    throw;
  }
  return plugin;
}

// A function that a table must have, by its name in the C header.
template <class Table>
struct Slot {
  const char* name;
  bool (*filled)(const Table& table);
};

#define SLOT(member)                                                                 \
  {                                                                                  \
    .name = #member, .filled = [](const auto& one) { return one.member != nullptr; } \
  }

template <class Table>
void require_slots(const hr_plugin& plugin, const char* id, const Table& table,
                   std::initializer_list<Slot<Table>> slots) {
  for (const Slot<Table>& slot : slots) {
    if (slot.filled(table)) continue;
    throw Error(Exit::plugin, plugin.id,
                std::string("its table ") + id + " has no " + slot.name + ": this function is required");
  }
}

// NULL: the plugin offers no such interface. Error(plugin) where its size, its required functions or its options are
// not as they must be.
template <class Table>
const Table* interface_table(const hr_plugin& plugin, const char* id,
                             std::initializer_list<Slot<Table>> required = {}) {
  const auto* table = static_cast<const Table*>(call(plugin.id, "get_interface", plugin.get_interface, id));
  if (table == nullptr) return nullptr;
  require_size(table->struct_size, sdk::size_of_1_0<Table>, std::string("its table ") + id, plugin.id);
  require_slots(plugin, id, *table, required);
  if constexpr (requires { table->options; }) to_option_table(table->options, plugin.id);
  return table;
}

}  // namespace

Library Library::load(const std::filesystem::path& path) {
  std::error_code problem;
  const std::filesystem::path real = std::filesystem::canonical(path, problem);
  if (problem) throw Error(Exit::plugin, "plugin", path.string() + " cannot be loaded: " + problem.message());
  OpenedLibraries& all = opened_libraries();
  // Held while loading, so that init runs once although several threads may ask.
  const MutexLock lock(all.mutex);
  // By its real path: links to one file are one plugin. After a failure before init the next call tries again.
  Opened& entry = all.by_real_path[real];
  if (entry.init_failed) throw Error(*entry.init_failed);
  if (entry.plugin == nullptr) entry.plugin = load_once(real, entry);
  Library library;
  library.plugin_ = entry.plugin;
  library.path_ = real;
  library.build_ = entry.build;
  return library;
}

const hr_host* Library::host() const { return Session::of_process()->host_for(plugin_->id); }

const hr_datasource* Library::datasource() const {
  return interface_table<hr_datasource>(*plugin_, HR_DATASOURCE,
                                        {SLOT(open), SLOT(close), SLOT(field_count), SLOT(field), SLOT(split_count),
                                         SLOT(split), SLOT(length), SLOT(group_count), SLOT(group), SLOT(file_count),
                                         SLOT(file), SLOT(reader_open), SLOT(reader_close), SLOT(read)});
}

const hr_synth* Library::synth() const { return interface_table<hr_synth>(*plugin_, HR_SYNTH, {SLOT(write)}); }

const hr_convert* Library::convert() const {
  return interface_table<hr_convert>(*plugin_, HR_CONVERT, {SLOT(list), SLOT(write)});
}

const hr_model_torch* Library::model_torch() const {
  return interface_table<hr_model_torch>(
      *plugin_, HR_MODEL_TORCH,
      {SLOT(create), SLOT(destroy), SLOT(param_count), SLOT(param), SLOT(output_count), SLOT(output),
       SLOT(metric_count), SLOT(metric), SLOT(step)});
}

const hr_state* Library::state() const {
  return interface_table<hr_state>(*plugin_, HR_STATE, {SLOT(save), SLOT(load)});
}

// Both functions are optional.
const hr_gc* Library::gc() const { return interface_table<hr_gc>(*plugin_, HR_GC); }

const hr_predict* Library::predict() const {
  const auto* table = interface_table<hr_predict>(*plugin_, HR_PREDICT);
  if (table == nullptr) return nullptr;
  if (table->open != nullptr || table->read != nullptr)
    require_slots<hr_predict>(*plugin_, HR_PREDICT, *table, {SLOT(open), SLOT(close), SLOT(read)});
  if (table->predict != nullptr) require_slots<hr_predict>(*plugin_, HR_PREDICT, *table, {SLOT(target_field)});
  return table;
}

const hr_inputs* Library::inputs() const { return interface_table<hr_inputs>(*plugin_, HR_INPUTS, {SLOT(list)}); }

// Its balance is optional.
const hr_classes* Library::classes() const { return interface_table<hr_classes>(*plugin_, HR_CLASSES, {SLOT(scores)}); }

const hr_class_names* Library::class_names() const {
  return interface_table<hr_class_names>(*plugin_, HR_CLASS_NAMES, {SLOT(name)});
}

const hr_positions* Library::positions() const {
  return interface_table<hr_positions>(*plugin_, HR_POSITIONS, {SLOT(position)});
}

const hr_capabilities* Library::capabilities() const {
  return interface_table<hr_capabilities>(*plugin_, HR_CAPABILITIES, {SLOT(of_model)});
}

const hr_backward* Library::backward() const {
  return interface_table<hr_backward>(*plugin_, HR_BACKWARD, {SLOT(backward)});
}

const hr_model_files* Library::model_files() const {
  return interface_table<hr_model_files>(*plugin_, HR_MODEL_FILES, {SLOT(list)});
}

const hr_optimizer* Library::optimizer() const {
  return interface_table<hr_optimizer>(*plugin_, HR_OPTIMIZER, {SLOT(create), SLOT(destroy), SLOT(needs), SLOT(step)});
}

std::span<const KnownInterface> known_interfaces() {
  static constexpr KnownInterface all[] = {
      {HR_MODEL_TORCH, [](const Library& by) { return by.model_torch() != nullptr; }},
      {HR_DATASOURCE, [](const Library& by) { return by.datasource() != nullptr; }},
      {HR_SYNTH, [](const Library& by) { return by.synth() != nullptr; }},
      {HR_CONVERT, [](const Library& by) { return by.convert() != nullptr; }},
      {HR_STATE, [](const Library& by) { return by.state() != nullptr; }},
      {HR_GC, [](const Library& by) { return by.gc() != nullptr; }},
      {HR_PREDICT, [](const Library& by) { return by.predict() != nullptr; }},
      {HR_INPUTS, [](const Library& by) { return by.inputs() != nullptr; }},
      {HR_CLASSES, [](const Library& by) { return by.classes() != nullptr; }},
      {HR_CLASS_NAMES, [](const Library& by) { return by.class_names() != nullptr; }},
      {HR_COST_OPTIONS, [](const Library& by) { return !by.cost_options().empty(); }},
      {HR_POSITIONS, [](const Library& by) { return by.positions() != nullptr; }},
      {HR_CAPABILITIES, [](const Library& by) { return by.capabilities() != nullptr; }},
      {HR_BACKWARD, [](const Library& by) { return by.backward() != nullptr; }},
      {HR_MODEL_FILES, [](const Library& by) { return by.model_files() != nullptr; }},
      {HR_OPTIMIZER, [](const Library& by) { return by.optimizer() != nullptr; }}};
  return all;
}

std::vector<std::string> Library::cost_options() const {
  const auto* table = interface_table<hr_cost_options>(*plugin_, HR_COST_OPTIONS, {SLOT(names)});
  const hr_datasource* source = datasource();
  std::vector<std::string> names;
  if (table == nullptr || source == nullptr) return names;
  const OptionTable options = to_option_table(source->options, id());
  for (const char* const* name = table->names; *name != nullptr; ++name) {
    if (std::ranges::none_of(options, [&](const OptionSpec& option) { return option.name == *name; })) {
      throw Error(Exit::plugin, id(),
                  "its table " HR_COST_OPTIONS " names '" + std::string(*name) + "', which is no option of its source");
    }
    names.emplace_back(*name);
  }
  return names;
}

std::vector<std::string> Library::recompute_kinds() const {
  const hr_model_torch* model = model_torch();
  std::vector<std::string> kinds;
  if (model == nullptr || model->recompute_kinds == nullptr) return kinds;
  for (const char* const* kind = model->recompute_kinds; *kind != nullptr; ++kind) {
    const std::string name = *kind;
    const bool taken = name == "none" || name == "auto" || std::ranges::count(kinds, name) > 0;
    // hr_call.recompute has a bit for each. "none" and "auto" are words of memory.recompute itself.
    if (kinds.size() == 64 || name.empty() || taken) {
      throw Error(Exit::plugin, id(),
                  "its recompute_kinds are not at most 64 different names other than none and auto; this is a bug of "
                  "the plugin");
    }
    kinds.push_back(name);
  }
  return kinds;
}

}  // namespace headroom
