#include "data/synth.hpp"

#include "own_suffix.hpp"
#include "plugins/call.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

// False where another process has put data at `path` meanwhile, which stays.
bool write_and_rename(const Library& source, const hr_synth& synth, const NativeOptions& options,
                      const fs::path& path) {
  std::error_code failed;
  // Beside `path`, so that rename() stays inside of one file system.
  const fs::path partial = path.string() + ".partial-" + own_suffix();
  fs::create_directories(partial, failed);
  if (failed)
    throw Error(Exit::cannot_write, "data.synth", "cannot make " + partial.string() + ": " + failed.message());
  try {
    hr_error error = no_error();
    const hr_status status = synth.write(source.host(), options.values(), partial.c_str(), &error);
    check(status, error, source.id(), "writing synthetic data", Exit::cannot_write);
    fs::rename(partial, path, failed);
    if (!failed) return true;
    std::error_code ignored;
    if (!fs::exists(path, ignored))
      throw Error(Exit::cannot_write, "data.synth",
                  "cannot rename " + partial.string() + " to " + path.string() + ": " + failed.message());
  } catch (...) {
    // Half a data set would be taken for a whole one.
    fs::remove_all(partial, failed);
    throw;
  }
  fs::remove_all(partial, failed);
  return false;
}

}  // namespace

std::optional<fs::path> data_path(const OptionTable& data_table, const OptionValues& data_options) {
  for (size_t i = 0; i < data_table.size(); ++i) {
    if (data_table[i].name != "path") continue;
    if (const auto* text = std::get_if<std::string>(&data_options[i].value)) {
      const fs::path path(*text);
      return path.has_filename() ? path : path.parent_path();  // "data/" is the folder data
    }
  }
  return std::nullopt;
}

std::optional<SynthOptions> check_synth(const Library& source, const Experiment& experiment) {
  if (!experiment.data_synth) return std::nullopt;
  if (source.synth() == nullptr) {
    throw Error(Exit::bad_input, "data.synth",
                "datasource '" + source.id() + "' cannot write synthetic data: remove [data.synth]");
  }
  SynthOptions synth{to_option_table(source.synth()->options), {}};
  synth.values = check_options(synth.table, &*experiment.data_synth, "data.synth", "datasource '" + source.id() + "'");
  return synth;
}

std::optional<fs::path> synthesise_missing(const Library& source, const std::optional<SynthOptions>& synth,
                                           const OptionTable& data_table, const OptionValues& data_options) {
  if (!synth) return std::nullopt;
  const auto path = data_path(data_table, data_options);
  if (!path) {
    throw Error(Exit::bad_input, "data.synth",
                "datasource '" + source.id() + "' needs data.options.path to write to: set it");
  }
  std::error_code error;
  if (fs::exists(*path, error)) return std::nullopt;
  if (!write_and_rename(source, *source.synth(), NativeOptions(synth->table, synth->values), *path))
    return std::nullopt;
  return path;
}

}  // namespace headroom
