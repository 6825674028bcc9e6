// `headroom new model NAME` and `headroom new source NAME [--lang c|rust]`: a folder outside this tree with a model and
// a datasource that build and train as they are, for the author to change.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <string_view>

#include "cli/command_line.hpp"
#include "cli/trainer_program.hpp"
#include "error.hpp"
#include "memory/readable.hpp"
#include "plugins/note.hpp"
#include "record/output_file.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

void require_id(const std::string& name) {
  static const std::set<std::string> cmakes = {"all", "clean", "help", "install", "package", "test"};
  if (cmakes.contains(name))
    throw Error(Exit::bad_input, "new", "'" + name + "' is a target of CMake's own: give another name");
  if (is_plugin_id(name)) return;
  throw Error(Exit::bad_input, "new",
              "'" + name + "' cannot be a plugin's id: use a lower-case letter, then lower-case letters, digits or _");
}

// The id is the name of a crate.
void require_crate_name(const std::string& name) {
  static const std::set<std::string> words = {
      "abstract", "as",      "async", "await",   "become", "box",   "break", "const", "continue", "crate", "do",
      "dyn",      "else",    "enum",  "extern",  "false",  "final", "fn",    "for",   "gen",      "if",    "impl",
      "in",       "let",     "loop",  "macro",   "match",  "mod",   "move",  "mut",   "override", "priv",  "pub",
      "ref",      "return",  "self",  "static",  "struct", "super", "trait", "true",  "try",      "type",  "typeof",
      "unsafe",   "unsized", "use",   "virtual", "where",  "while", "yield"};
  if (words.contains(name))
    throw Error(Exit::bad_input, "new",
                "'" + name + "' is a keyword of Rust, which no crate is called: give another name");
  if (name == "headroom")
    throw Error(Exit::bad_input, "new", "'headroom' is the crate that plugins use: give another name");
}

// "wrist_angles" -> "WristAngles"; what follows it keeps it apart from names of the SDK
std::string class_name(const std::string& id) {
  std::string name;
  bool begins = true;
  for (const char c : id) {
    if (c != '_') name += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = c == '_';
  }
  return name;
}

// Words of the templates and what stands in their place.
using Words = std::map<std::string, std::string>;

Words words_for(const std::string& name, bool is_model) {
  const std::string model = is_model ? name : name + "_model", source = is_model ? name + "_data" : name;
  const fs::path program = fs::read_symlink("/proc/self/exe");
  return {{"my_plugin", name},
          {"my_model", model},
          {"my_source", source},
          {"MyModel", class_name(name) + "Model"},
          {"MySource", class_name(name) + "Source"},
          {"HEADROOM_PROGRAM", program.string()},
          {"HEADROOM_TRAINER", trainer_program().string()},
          {"HEADROOM_RUST", (sdk_folder() / "share/headroom/rust/headroom").string()},
          {"HEADROOM_SDK", sdk_folder().string()}};
}

// In one pass: what stands in a word's place may contain another word.
std::string replaced(std::string_view text, const Words& words) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const auto found =
        std::ranges::find_if(words, [&](const auto& word) { return text.substr(at).starts_with(word.first); });
    result += found == words.end() ? std::string(1, text[at]) : found->second;
    at += found == words.end() ? 1 : found->first.size();
  }
  return result;
}

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Where a template goes in the new folder.
fs::path place_of(const std::string& name, const Words& words) {
  // Under its own name it would act on the folder of templates.
  if (name == "gitignore") return ".gitignore";
  if (name == "launch.json") return ".vscode/launch.json";
  if (name == "lib.rs") return "src/lib.rs";
  return replaced(name, words);
}

// By name. Those of another language come on top of the ones for C++.
std::map<std::string, fs::path> templates(const std::string& language) {
  const fs::path all = sdk_folder() / "share/headroom/templates";
  std::map<std::string, fs::path> found;
  for (const auto& entry : fs::directory_iterator(all / "plugin"))
    found[entry.path().filename().string()] = entry.path();
  if (language == "cpp") return found;
  found.erase("my_source.cpp");
  for (const auto& entry : fs::directory_iterator(all / language))
    found[entry.path().filename().string()] = entry.path();
  return found;
}

struct NewPlugin {
  std::string name, in = ".", language = "cpp";
  bool is_model = false;
};

void write_plugin(const NewPlugin& plugin) {
  const bool in_rust = plugin.language == "rust";
  require_id(plugin.name);
  if (in_rust) require_crate_name(plugin.name);
  const fs::path folder = (fs::path(plugin.in) / plugin.name).lexically_normal();
  std::error_code error;
  if (fs::exists(folder, error))
    throw Error(Exit::bad_input, "new", folder.string() + " is there already: give another name");
  const Words words = words_for(plugin.name, plugin.is_model);
  for (const auto& [name, from] : templates(plugin.language)) {
    const fs::path to = folder / place_of(name, words);
    fs::create_directories(to.parent_path(), error);
    if (error) throw cannot_write(to.parent_path(), error.value());
    write_file_atomically(to, replaced(read_file(from), words));
  }
  const std::string source = in_rust ? "src/lib.rs" : words.at("my_source") + "." + plugin.language;
  std::printf("%s: model %s.cpp, datasource %s, experiment %s.toml\n", folder.c_str(), words.at("my_model").c_str(),
              source.c_str(), plugin.name.c_str());
  std::printf("  headroom plugins build %s\n", shell_word(folder.string()).c_str());
  std::printf("  headroom run %s --plugin-dir %s\n", shell_word((folder / (plugin.name + ".toml")).string()).c_str(),
              shell_word((folder / "build/release").string()).c_str());
}

void add_kind(CLI::App& command, const char* kind, const char* what, bool is_model) {
  auto* one = command.add_subcommand(kind, what);
  one->footer(std::string("Example: headroom new ") + kind + " wrist");
  auto plugin = std::make_shared<NewPlugin>();
  plugin->is_model = is_model;
  one->add_option("name", plugin->name, "The plugin's id; the folder is called so")->required();
  one->add_option("--in", plugin->in, "Folder to make it in")->capture_default_str();
  if (!is_model) {
    one->add_option("--lang", plugin->language, "What the datasource is written in")
        ->check(CLI::IsMember({"cpp", "c", "rust"}))
        ->capture_default_str();
  }
  one->callback([plugin] { write_plugin(*plugin); });
}

}  // namespace

void add_new(CLI::App& app) {
  auto* command =
      app.add_subcommand("new", "A plugin of your own: a folder that builds and trains")->require_subcommand(1);
  add_kind(*command, "model", "A model, with a datasource to try it on", /*is_model=*/true);
  add_kind(*command, "source", "A datasource, with a model to try it with", /*is_model=*/false);
}

}  // namespace headroom
