#include <algorithm>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "arrays/inspect.hpp"
#include "cli/commands.hpp"
#include "cli/convert_files.hpp"
#include "config/sizes.hpp"
#include "data/services.hpp"
#include "data/synth.hpp"
#include "headroom/sdk/shape_text.hpp"
#include "memory/readable.hpp"
#include "plugins/library.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct InspectWords {
  std::string path, chunk_cache = "32 MiB";
  int64_t window = 500;
  bool json = false;
};

std::string size(uint64_t bytes) { return size_text(static_cast<int64_t>(bytes)); }

std::string filters_text(const SurveyedObject& object) {
  std::string text;
  for (const StoredFilter& filter : object.filters) {
    text += text.empty() ? "" : "+";
    text += filter.name.empty() ? "filter " + std::to_string(filter.id) : filter.name;
  }
  return text;
}

// "chunks [1, 480, 640, 3] of 900.0 KiB, 400 of them, deflate, 170.2 MiB stored of 351.6 MiB (2.1 : 1)"
std::string storage_text(const InspectedDataset& dataset) {
  const SurveyedObject& object = dataset.object;
  std::string text = object.layout;
  if (!object.chunk.empty()) {
    text = counted(dataset.chunks, "chunk") + " " + sdk::shape_text(object.chunk) + " of " + size(dataset.chunk_bytes);
  }
  if (!object.filters.empty()) text += ", " + filters_text(object);
  text += ", " + size(object.stored_bytes);
  // UINT64_MAX: the extents multiply to more than can be counted.
  if (object.stored_bytes != object.raw_bytes && object.raw_bytes != UINT64_MAX) {
    text += " stored of " + size(object.raw_bytes);
    if (object.stored_bytes > 0) {
      char ratio[32];
      std::snprintf(ratio, sizeof ratio, " (%.2f : 1)",
                    static_cast<double>(object.raw_bytes) / static_cast<double>(object.stored_bytes));
      text += ratio;
    }
  }
  return text;
}

// "attributes rate, start": at most eight names.
std::string attributes_text(const std::vector<std::string>& names) {
  constexpr size_t most = 8;
  std::string text = names.size() == 1 ? "attribute" : "attributes";
  for (size_t i = 0; i < std::min(names.size(), most); ++i) text += (i > 0 ? ", " : " ") + names[i];
  return names.size() > most ? text + ", and " + std::to_string(names.size() - most) + " more" : text;
}

// Files and datasets of one kind deserve the same warning each: it is printed for the first, and counted for the
// others.
class Warnings {
 public:
  void print(const std::string& dataset, const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings) {
      // Figures differ from file to file, and the warning is the same.
      std::string kind = dataset + " " + warning;
      std::erase_if(kind, [](unsigned char c) { return std::isdigit(c) != 0; });
      if (printed_.insert(kind).second) {
        std::printf("      warning: %s\n", warning.c_str());
      } else {
        ++repeated_;
      }
    }
  }
  void print_repeated() const {
    if (repeated_ == 0) return;
    std::printf("\n%s like those above, for datasets of the same kind; --json has all of them\n",
                counted(repeated_, "more warning").c_str());
  }

 private:
  std::set<std::string> printed_;
  uint64_t repeated_ = 0;
};

std::string lists_text(const SurveyedObject& object) {
  const ListLengths& lists = object.lists;
  uint64_t all = 1;
  for (const uint64_t extent : object.shape) all *= extent;
  const std::string which = lists.seen < all ? "the first " + counted(lists.seen, "list") + " have "
                                             : counted(lists.seen, "list") + (lists.seen == 1 ? " has " : " have ");
  const std::string values = lists.shortest == lists.longest
                                 ? std::to_string(lists.longest)
                                 : std::to_string(lists.shortest) + " to " + std::to_string(lists.longest);
  return which + values + " values (" + counted(lists.values, "value") + " in all)";
}

void print(const InspectedFile& file, Warnings& warnings) {
  std::printf("%s  %s", file.path.c_str(), size(file.size_bytes).c_str());
  if (!file.problem.empty()) {
    std::printf("\n  cannot be read: %s\n", file.problem.c_str());
    return;
  }
  const std::string groups = file.groups > 0 ? " in " + counted(file.groups, "group") : "";
  std::printf(", %s%s, %s", counted(file.datasets.size(), "dataset").c_str(), groups.c_str(),
              counted(file.attributes, "attribute").c_str());
  if (file.user_block_bytes > 0) std::printf(", user block of %s", size(file.user_block_bytes).c_str());
  std::printf("\n");
  for (const auto& [group, names] : file.group_attributes)
    std::printf("  %s  %s\n", group.c_str(), attributes_text(names).c_str());
  for (const InspectedDataset& dataset : file.datasets) {
    const SurveyedObject& object = dataset.object;
    std::printf("  %s  %s %s", object.name.c_str(), sdk::shape_text(object.shape).c_str(), object.type.c_str());
    if (!object.attributes.empty()) std::printf(", %s", attributes_text(object.attributes).c_str());
    std::printf("\n      %s\n", storage_text(dataset).c_str());
    if (object.lists.seen > 0) std::printf("      %s\n", lists_text(object).c_str());
    if (!dataset.lane.empty())
      std::printf("      read: %s%s\n", dataset.lane.c_str(), dataset.why.empty() ? "" : (", " + dataset.why).c_str());
    if (!dataset.problem.empty()) std::printf("      cannot be read: %s\n", dataset.problem.c_str());
    warnings.print(object.name, dataset.warnings);
  }
  if (file.cut_off) std::printf("  ... more than 100,000 objects\n");
}

Json as_json(const InspectedDataset& dataset) {
  const SurveyedObject& object = dataset.object;
  Json filters = Json::array();
  for (const StoredFilter& filter : object.filters)
    filters.push_back({{"id", filter.id}, {"name", filter.name}, {"available", filter.available}});
  Json json = {{"name", object.name},
               {"shape", object.shape},
               {"type", object.type},
               {"element_bytes", object.element_bytes},
               {"layout", object.layout},
               {"chunk", object.chunk},
               {"chunks", dataset.chunks},
               {"chunk_bytes", dataset.chunk_bytes},
               {"filters", filters},
               {"stored_bytes", object.stored_bytes},
               {"raw_bytes", object.raw_bytes},
               {"attributes", object.attributes.size()},
               {"attribute_names", object.attributes},
               {"lane", dataset.lane},
               {"why", dataset.why},
               {"warnings", dataset.warnings}};
  if (const ListLengths& lists = object.lists; lists.seen > 0) {
    json["lists"] = {{"seen", lists.seen},
                     {"shortest", lists.shortest},
                     {"longest", lists.longest},
                     {"longest_at", lists.longest_at},
                     {"values", lists.values}};
  }
  if (!dataset.problem.empty()) json["problem"] = dataset.problem;
  return json;
}

Json as_json(const InspectedFile& file) {
  // An empty list is [], not null.
  Json datasets = Json::array();
  for (const InspectedDataset& dataset : file.datasets) datasets.push_back(as_json(dataset));
  Json json = {
      {"path", file.path.string()}, {"size_bytes", file.size_bytes}, {"user_block_bytes", file.user_block_bytes},
      {"groups", file.groups},      {"attributes", file.attributes}, {"cut_off", file.cut_off},
      {"datasets", datasets}};
  for (const auto& [group, names] : file.group_attributes) json["group_attributes"][group] = names;
  if (!file.problem.empty()) json["problem"] = file.problem;
  return json;
}

std::vector<fs::path> files_below(const fs::path& path) {
  std::error_code failed;
  if (!fs::exists(path, failed)) throw Error(Exit::bad_input, "data inspect", path.string() + " does not exist");
  if (!fs::is_directory(path, failed)) return {path};
  std::vector<fs::path> files;
  for (const fs::path& file : regular_files(path)) {
    if (is_hdf5_name(file)) files.push_back(file);
  }
  if (files.empty())
    throw Error(Exit::bad_input, "data inspect", "no HDF5 file (*.hdf5, *.h5, *.mat) is in " + path.string());
  return files;
}

void inspect(const InspectWords& words, CommandLine& line) {
  const auto cache = parse_bytes(words.chunk_cache);
  if (!cache || *cache < 0)
    throw Error(Exit::bad_input, "cli", "--chunk-cache " + words.chunk_cache + ": expected a size such as \"64 MiB\"");
  const InspectOptions options{static_cast<uint64_t>(*cache), static_cast<uint64_t>(words.window)};
  Json files = Json::array();
  Warnings warnings;
  uint64_t unreadable = 0, count = 0;
  for (const fs::path& path : files_below(words.path)) {
    const InspectedFile file = inspect_file(path, options);
    const bool whole = file.problem.empty() && std::ranges::all_of(file.datasets, [](const InspectedDataset& dataset) {
                         return dataset.problem.empty();
                       });
    unreadable += whole ? 0 : 1;
    if (words.json) {
      // One document, printed at the end; text comes file by file.
      files.push_back(as_json(file));
    } else {
      if (count > 0) std::printf("\n");
      print(file, warnings);
    }
    ++count;
  }
  if (words.json) std::printf("%s\n", json_text(Json{{"files", files}}, 2).c_str());
  if (!words.json) warnings.print_repeated();
  // Printed nevertheless: one bad file does not hide the others.
  if (unreadable > 0) line.exit_code = static_cast<int>(Exit::data);
}

void add_data_inspect(CLI::App& data, CommandLine& line) {
  auto* command = data.add_subcommand("inspect", "What HDF5 files hold, and how fast it can be read");
  command->footer("Example: headroom data inspect data/emg --json");
  auto words = std::make_shared<InspectWords>();
  command->add_option("path", words->path, "An HDF5 file, or a folder of them")->required();
  command->add_option("--chunk-cache", words->chunk_cache, "The data.chunk_cache_size to judge by")
      ->capture_default_str();
  command->add_option("--window", words->window, "Rows of a window to judge by")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--json", words->json, "Print JSON");
  command->callback([words, &line] { inspect(*words, line); });
}

void synthesise(const ExperimentWords& words, const CommandLine& line) {
  const Experiment experiment = load_experiment(words.file, words.overrides());
  if (!experiment.data_synth)
    throw Error(Exit::bad_input, "data.synth", words.file + " has no [data.synth] table: nothing to write");
  // Before a plugin is loaded (register_service).
  register_data_services();
  const Library source = Library::load(find_plugin(experiment.data.source, line.plugin_dirs));
  if (source.datasource() == nullptr) {
    throw Error(Exit::bad_input, "data.source", "'" + experiment.data.source + "' is not a datasource plugin");
  }
  const OptionTable table = to_option_table(source.datasource()->options);
  const OptionValues values =
      check_options(table, &experiment.data_options, "data.options", "datasource '" + source.id() + "'");
  const auto written = synthesise_missing(source, check_synth(source, experiment), table, values);
  if (written) {
    std::printf("wrote %s\n", written->c_str());
  } else {
    std::printf("%s is there already: left as it is\n", data_path(table, values)->c_str());
  }
}

}  // namespace

void add_data(CLI::App& app, CommandLine& line) {
  auto* data = app.add_subcommand("data", "Make, look at and convert data")->require_subcommand(1);
  auto* command = data->add_subcommand("synth", "Write the synthetic data of an experiment's [data.synth]");
  command->footer("Example: headroom data synth quick_demo");
  auto words = std::make_shared<ExperimentWords>();
  add_experiment_words(*command, *words);
  add_plugin_dirs(*command, line);
  command->callback([words, &line] { synthesise(*words, line); });
  add_data_inspect(*data, line);
  add_data_convert(*data, line);
}

}  // namespace headroom
