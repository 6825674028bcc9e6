#include "plugins/conformance.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "error.hpp"
#include "plugins/call.hpp"
#include "plugins/elf_file.hpp"
#include "plugins/library.hpp"
#include "plugins/optimizer_checks.hpp"
#include "plugins/option_checks.hpp"
#include "plugins/read_checks.hpp"

namespace headroom {

namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw Error(Exit::plugin, "plugin", sentence); }

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

class PluginChecks {
 public:
  explicit PluginChecks(std::filesystem::path path) : path_(std::move(path)) {}

  std::vector<CheckResult> run() {
    // The list ends with a check that all later ones build on.
    if (!check("is a shared library", [&] { facts_ = ElfFacts::of(path_); })) return list_.take();
    check("carries an ELF note", [&] { require_note(); });
    check("exports headroom_plugin and nothing else", [&] { require_exports(); });
    check("is never unloaded (-z nodelete)", [&] { require_nodelete(); });
    check("links LibTorch only if it says so", [&] { require_declared_libraries(); });
    check("registers no operators (TORCH_LIBRARY)", [&] { require_no_registration(); });
    // From here on code of the plugin runs.
    if (!check("loads", [&] { library_ = Library::load(path_); })) return list_.take();
    check("note and header say the same", [&] { require_equal_note(); });
    check("answers for interfaces", [&] { require_interfaces(); });
    check_options_of(HR_MODEL_TORCH, "model.options", [&] { return library_->model_torch(); });
    check_options_of(HR_DATASOURCE, "data.options", [&] { return library_->datasource(); });
    check_options_of(HR_SYNTH, "data.synth", [&] { return library_->synth(); });
    check_options_of(HR_CONVERT, "data convert --set", [&] { return library_->convert(); });
    check_options_of(HR_OPTIMIZER, "train.optimizer_options", [&] { return library_->optimizer(); });
    check("model: refuses with a sentence, and without anywhere to put it", [&] { try_model(); });
    check("datasource: refuses with a sentence, and without anywhere to put it", [&] { try_source(); });
    check("datasource: describes itself consistently", [&] { require_source(); });
    check_reads(list_, [&]() -> const Source& { return open_source(); });
    check_optimizer(list_, library_);
    return list_.take();
  }

 private:
  bool check(const std::string& name, const std::function<void()>& body) { return list_.check(name, body); }

  void require_note() {
    note_ = read_note(path_);
    if (!note_)
      refuse(
          "it has none: mismatches are found only after its code has run; use HEADROOM_PLUGIN, or emit hr_note "
          "yourself");
  }

  void require_exports() const {
    if (!facts_.has_symbols) throw DoesNotApply{"the file carries no symbol table to look at"};
    std::vector<std::string> others = facts_.exported;
    std::erase(others, HR_PLUGIN_SYMBOL);
    if (others.size() == facts_.exported.size())
      refuse("it does not export headroom_plugin: build it with headroom_add_plugin()");
    // A call of an exported function may be bound to another of that name, in the host or in LibTorch.
    if (others.empty()) return;
    const std::size_t count = others.size();
    others.resize(std::min<std::size_t>(count, 3));
    refuse("it also exports " + std::to_string(count) + " others, among them " + joined(others) +
           ": build it with headroom_add_plugin()");
  }

  void require_nodelete() const {
    if (!facts_.nodelete)
      refuse(
          "it may be unmapped while autograd nodes still need it: link it with -Wl,-z,nodelete, as "
          "headroom_add_plugin() does");
  }

  void require_declared_libraries() const {
    std::vector<std::string> torch;
    for (const std::string& library : facts_.needed) {
      if (library.starts_with("libtorch") || library.starts_with("libc10")) torch.push_back(library);
    }
    // The torch-free program goes by the flags: it must not load LibTorch.
    const bool says_so = note_ && (note_->flags & HR_PLUGIN_TORCH) != 0;
    if (note_ && !torch.empty() && !says_so)
      refuse("it links " + joined(torch) + " but its flags lack HR_PLUGIN_TORCH");
  }

  void require_no_registration() const {
    if (!facts_.has_symbols) throw DoesNotApply{"the file carries no symbol table to look at"};
    // What each way to register calls, as GCC and Clang mangle it.
    static constexpr std::pair<const char*, const char*> ways[] = {
        {"_ZN5torch7LibraryC", "TORCH_LIBRARY"},
        {"_ZN3c1017RegisterOperators", "RegisterOperators"},
        {"_ZN5torch3jit16registerOperator", "registerOperator"},
        {"_ZN5torch6detail10class_baseC", "torch::class_"}};
    for (const std::string& symbol : facts_.undefined) {
      for (const auto& [beginning, name] : ways) {
        if (!symbol.starts_with(beginning)) continue;
        refuse(std::string("it registers operators or classes with ") + name +
               ", which cannot be undone or done twice: use plain functions or autograd::Function");
      }
    }
  }

  void require_equal_note() const {
    if (!note_) throw DoesNotApply{"there is no note"};
    const hr_plugin& plugin = library_->plugin();
    const std::string tag = plugin.torch_tag != nullptr ? plugin.torch_tag : "";
    // The host decides by the note whether to load the file, so it must not promise what the header does not keep.
    if (note_->id != plugin.id) refuse("the note says id '" + note_->id + "', the header '" + plugin.id + "'");
    if (note_->torch_tag != tag) refuse("the note says LibTorch '" + note_->torch_tag + "', the header '" + tag + "'");
    if (note_->abi_major != plugin.abi_major || note_->abi_minor != plugin.abi_minor || note_->flags != plugin.flags ||
        note_->min_host_minor != plugin.min_host_minor) {
      refuse("ABI version, flags or min_host_minor differ between note and header");
    }
  }

  void require_interfaces() const {
    const hr_plugin& plugin = library_->plugin();
    if (call(plugin.id, "get_interface", plugin.get_interface, "headroom.unknown/999") != nullptr) {
      refuse("get_interface returns a table for an id it cannot know: it must return NULL");
    }
    for (const char* id : {HR_MODEL_TORCH, HR_DATASOURCE, HR_SYNTH, HR_CONVERT, HR_STATE, HR_GC, HR_PREDICT, HR_INPUTS,
                           HR_CLASSES, HR_CLASS_NAMES, HR_POSITIONS, HR_OPTIMIZER}) {
      if (call(plugin.id, "get_interface", plugin.get_interface, id) !=
          call(plugin.id, "get_interface", plugin.get_interface, id)) {
        refuse(std::string("get_interface returns another table for ") + id + " each time: tables live for ever");
      }
    }
    // These throw where a table is malformed.
    library_->state();
    library_->gc();
    library_->predict();
    library_->inputs();
    library_->classes();
    library_->class_names();
    library_->positions();
    if (library_->model_torch() == nullptr && library_->datasource() == nullptr && library_->optimizer() == nullptr)
      refuse("it is neither a model nor a datasource nor an optimizer");
  }

  template <class Find>
  void check_options_of(const std::string& interface, const std::string& where, Find find) {
    check(interface + ": options are well-formed", [&] {
      const auto* table = find();
      if (table == nullptr) throw DoesNotApply{"it has no " + interface};
      require_good_options(to_option_table(table->options, library_->id()), where);
    });
  }

  // Opens twice, with and without an hr_error; the statuses must agree, and a failure must come with a sentence.
  template <class Open>
  void try_open(const std::string& what, Open open) {
    hr_error error = no_error();
    const hr_status status = open(&error);
    // abi.h: the caller's hr_error may be NULL.
    if (open(nullptr) != status) refuse(what + " returns another status when nobody asks for the error");
    if (status == HR_OK) return;
    if (std::memchr(error.message, '\0', sizeof error.message) == nullptr)
      refuse(what + " fills an error without its final NUL");
    if (error.message[0] == '\0') refuse(what + " fails with status " + std::to_string(status) + " and no sentence");
    if (error.struct_size != sizeof(hr_error) || error.code != status)
      refuse(what + " fills error.struct_size or error.code wrongly");
  }

  void try_model() {
    const hr_model_torch* api = library_->model_torch();
    if (api == nullptr) throw DoesNotApply{"it is not a model"};
    const OptionTable table = to_option_table(api->options, library_->id());
    const NativeOptions values(table, trial_values(table));
    // Most models refuse to be built without a field: how they refuse is what counts.
    try_open("create", [&](hr_error* error) {
      hr_model* model = nullptr;
      const hr_status status = call(library_->id(), "create", api->create, library_->host(), values.values(), nullptr,
                                    0u, 0u, &model, error);
      if (model != nullptr) {
        require_unique_names(*api, model);
        call(library_->id(), "destroy", api->destroy, model);
      }
      if ((model != nullptr) != (status == HR_OK))
        refuse("create returns status " + std::to_string(status) + (model ? " and a model" : " and no model"));
      return status;
    });
  }

  void require_unique_names(const hr_model_torch& api, hr_model* model) const {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < call(library_->id(), "param_count", api.param_count, model); ++i) {
      hr_param param{};
      param.struct_size = sizeof param;
      hr_error error = no_error();
      headroom::check(call(library_->id(), "param", api.param, model, i, &param, &error), error, library_->id(),
                      "describing a parameter");
      if (param.name == nullptr || std::ranges::find(names, param.name) != names.end())
        refuse("two parameters share a name, or one has none");
      names.emplace_back(param.name);
    }
  }

  void try_source() {
    const hr_datasource* api = library_->datasource();
    if (api == nullptr) throw DoesNotApply{"it is not a datasource"};
    const OptionTable table = to_option_table(api->options, library_->id());
    const NativeOptions values(table, trial_values(table));
    // A required path does not exist (trial_values), so a source that needs data refuses.
    try_open("open", [&](hr_error* error) {
      hr_source* source = nullptr;
      const hr_status status =
          call(library_->id(), "open", api->open, library_->host(), values.values(), &source, error);
      if (source != nullptr) call(library_->id(), "close", api->close, source);
      if ((source != nullptr) != (status == HR_OK))
        refuse("open returns status " + std::to_string(status) + (source ? " and a source" : " and no source"));
      opens_ = status == HR_OK;
      return status;
    });
  }

  void require_source() {
    if (library_->datasource() == nullptr) throw DoesNotApply{"it is not a datasource"};
    if (!opens_) throw DoesNotApply{"it does not open without data: give --with EXPERIMENT"};
    // Refuses a description that contradicts itself, files() a file without a path.
    source_ = Source::open(*library_, trial_values(to_option_table(library_->datasource()->options, library_->id())));
    source_->files();
  }

  const Source& open_source() const {
    if (!source_) throw DoesNotApply{"no source is open"};
    return *source_;
  }

  std::filesystem::path path_;
  CheckList list_;
  ElfFacts facts_;
  std::optional<Note> note_;
  std::optional<Library> library_;
  std::shared_ptr<const Source> source_;
  bool opens_ = false;
};

}  // namespace

std::vector<CheckResult> check_plugin(const std::filesystem::path& path) { return PluginChecks(path).run(); }

}  // namespace headroom
