#include "cli/convert_files.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/stat.h>

#include "config/document.hpp"
#include "error.hpp"
#include "memory/descriptor.hpp"
#include "plugins/call.hpp"
#include "record/output_file.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw Error(Exit::bad_input, "data convert", sentence); }

// Name by name: data/emg_fast does not lie below data/emg.
bool lies_below(const fs::path& inner, const fs::path& outer) {
  const auto [at, end] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return at == outer.end();
}

// Adds the regular files below `folder`, also those that links to folders lead to, as datasources see them. `left`: the
// real folders in which the links on the way here stand. A link to one of them, or above one, would lead around without
// end.
void add_files(const fs::path& folder, const std::vector<fs::path>& left, std::vector<fs::path>& files,
               std::error_code& failed) {
  std::error_code ignored;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, failed);
  // A failure ends the loop too, at its start or in a folder below.
  for (; entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    const fs::path& path = entry->path();
    const bool hidden = path.filename().string().starts_with(".");
    // A link that leads nowhere is neither of these.
    if (hidden && entry->is_directory(ignored)) entry.disable_recursion_pending();
    if (hidden) continue;
    if (entry->is_regular_file(ignored)) files.push_back(path);
    if (!entry->is_symlink(ignored) || !entry->is_directory(ignored)) continue;
    std::vector<fs::path> all_left = left;
    all_left.push_back(fs::weakly_canonical(path.parent_path(), ignored));
    const fs::path target = fs::weakly_canonical(path, ignored);
    const bool leads_around =
        std::ranges::any_of(all_left, [&](const fs::path& one) { return lies_below(one, target); });
    if (!leads_around) add_files(path, all_left, files, failed);
    if (failed) return;
  }
}

}  // namespace

namespace {

// Members are sorted by name, so equal facts make equal text.
std::string line_of(const nlohmann::json& facts) { return json_text(facts); }

nlohmann::json facts_of_other(const OtherFile& other) {
  const FileIdentity& is = other.identity;
  return {{"path", other.path},
          {"size_bytes", is.size_bytes},
          {"modified_ns", is.modified_s * 1'000'000'000LL + is.modified_ns}};
}

bool is_as_it_was(const nlohmann::json& other) {
  if (!other.is_object() || !other.contains("path") || !other["path"].is_string()) return false;
  return facts_of_other(as_they_are({{other["path"].get<std::string>()}}).front()) == other;
}

}  // namespace

bool is_hdf5_name(const fs::path& file) {
  // MATLAB 7.3 writes HDF5 as .mat, HDF-EOS5 as .he5.
  static constexpr std::array names = {".hdf5", ".h5", ".mat", ".hdf", ".he5"};
  return std::ranges::find(names, file.extension()) != names.end();
}

std::vector<fs::path> regular_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  add_files(folder, {}, files, failed);
  if (failed) refuse(folder.string() + " cannot be listed: " + failed.message());
  std::ranges::sort(files);
  return files;
}

ConvertRecord::ConvertRecord(fs::path folder, std::string options)
    : folder_(std::move(folder)), file_(folder_ / ".headroom-convert.jsonl"), options_(std::move(options)) {
  std::ifstream stream(file_);
  for (std::string line; std::getline(stream, line);) {
    nlohmann::json facts = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!facts.is_object()) continue;
    const nlohmann::json others = facts.value("others", nlohmann::json::array());
    facts.erase("others");
    others_[line_of(facts)] = others;
  }
}

nlohmann::json ConvertRecord::facts_of(const ConvertItem& item, const fs::path& written) const {
  struct stat source {
  }, target{};
  if (::stat(item.from.c_str(), &source) != 0 || ::stat(written.c_str(), &target) != 0) return {};
  std::error_code failed;
  return {{"format", 1},
          {"file", item.to.lexically_relative(folder_).string()},
          {"size_bytes", target.st_size},
          {"from", fs::weakly_canonical(item.from, failed).string()},
          {"from_size_bytes", source.st_size},
          {"from_modified_ns", source.st_mtim.tv_sec * 1'000'000'000LL + source.st_mtim.tv_nsec},
          {"options", options_}};
}

bool ConvertRecord::has(const ConvertItem& item) const {
  const nlohmann::json facts = facts_of(item, item.to);
  if (facts.is_null()) return false;
  // All of it has to be equal: another size, time or option is another conversion.
  const auto found = others_.find(line_of(facts));
  return found != others_.end() && std::ranges::all_of(found->second, is_as_it_was);
}

void ConvertRecord::add(const ConvertItem& item, const fs::path& partial, const std::vector<OtherFile>& others) {
  nlohmann::json facts = facts_of(item, partial), &noted = others_[line_of(facts)] = nlohmann::json::array();
  for (const OtherFile& other : others) noted.push_back(facts_of_other(other));
  if (!noted.empty()) facts["others"] = noted;
  const Descriptor file(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0) throw cannot_write(file_, errno);
  const std::string line = line_of(facts) + "\n";
  write_all(file.get(), std::as_bytes(std::span(line)), file_);
  // EINVAL: this kind of file cannot be synced.
  if (::fsync(file.get()) != 0 && errno != EINVAL) throw cannot_write(file_, errno);
}

void require_apart(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  if (!fs::exists(from, failed)) refuse(from.string() + " does not exist");
  // "weakly": what is to be written is not there yet.
  const fs::path source = fs::weakly_canonical(from, failed), target = fs::weakly_canonical(to, failed);
  if (source == target) refuse("--out " + to.string() + " is the file itself; the original is never overwritten");
  if (!fs::is_directory(from, failed)) {
    if (fs::is_directory(to, failed)) refuse("--out " + to.string() + " is a folder; name the file to write");
    return;
  }
  if (fs::is_regular_file(to, failed)) refuse("--out " + to.string() + " is a file; name the folder to write");
  if (lies_below(target, source)) refuse("--out " + to.string() + " lies inside " + from.string());
}

void look_for_done(std::vector<ConvertItem>& items, const ConvertRecord& record) {
  std::error_code failed;
  std::map<fs::path, fs::path> from;  // by what is written
  for (ConvertItem& item : items) {
    const auto [other, is_new] = from.emplace(item.to, item.from);
    if (!is_new) {
      refuse(other->second.string() + " and " + item.from.string() + " would both be written to " + item.to.string() +
             "; rename one of them");
    }
    item.done = record.has(item);
    if (!item.done && fs::exists(item.to, failed)) {
      refuse(item.to.string() + " is there already, and not from this conversion; remove it, or choose another --out");
    }
  }
}

fs::path partial_of(const ConvertItem& item) {
  return item.to.parent_path() / ("." + item.to.filename().string() + ".converting");
}

// A writer's own temporary name (Hdf5Writer) begins with that of the item's partial file.
void remove_leftovers(const std::vector<ConvertItem>& items) {
  constexpr std::string_view mark = ".partial-";
  std::map<fs::path, std::set<std::string>> begun;  // by folder
  for (const ConvertItem& item : items) {
    if (!item.done) begun[item.to.parent_path()].insert("." + partial_of(item).filename().string());
  }
  for (const auto& [folder, names] : begun) {
    std::error_code failed;
    fs::directory_iterator entry(folder.empty() ? fs::path(".") : folder, failed);
    for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
      const std::string name = entry->path().filename().string();
      std::error_code ignored;
      if (names.contains(name.substr(0, name.rfind(mark)))) fs::remove(entry->path(), ignored);
    }
  }
}

std::vector<ConvertItem> files_to_import(const fs::path& from, const fs::path& to, ImportFormat format,
                                         const ConvertRecord& record) {
  require_apart(from, to);
  std::vector<ConvertItem> items;
  std::error_code failed;
  if (fs::is_directory(from, failed)) {
    for (const fs::path& file : regular_files(from)) {
      if (format_of(file) != format) continue;
      items.push_back({file, (to / file.lexically_relative(from)).replace_extension(".hdf5")});
    }
    if (items.empty()) refuse("no file of the format " + format_name(format) + " lies below " + from.string());
  } else {
    if (!fs::is_regular_file(from, failed)) refuse(from.string() + " is neither a file nor a folder");
    if (!is_hdf5_name(to)) refuse("--out " + to.string() + " will be an HDF5 file; let its name end in .hdf5");
    items.push_back({from, to});
  }
  look_for_done(items, record);
  return items;
}

std::vector<ConvertItem> files_to_convert(const fs::path& from, const fs::path& to, const ConvertRecord& record) {
  require_apart(from, to);
  std::vector<ConvertItem> items;
  std::error_code failed;
  if (fs::is_directory(from, failed)) {
    for (const fs::path& file : regular_files(from))
      items.push_back({file, to / file.lexically_relative(from), is_hdf5_name(file)});
    if (items.empty()) refuse("no file lies below " + from.string());
  } else {
    items.push_back({from, to});
  }
  look_for_done(items, record);
  return items;
}

namespace fs = std::filesystem;

namespace {

const hr_convert* require_convert(const Library& source) {
  if (const hr_convert* api = source.convert()) return api;
  throw Error(Exit::bad_input, "data convert",
              "datasource '" + source.id() +
                  "' has no form of its own to convert to; leave out --source to change how "
                  "HDF5 files are laid out");
}

OptionValues checked(const OptionTable& table, const std::vector<Override>& set, const std::string& id) {
  const toml::table given = read_overrides(set);
  return check_options(table, &given, "--set", "the conversion of datasource '" + id + "'");
}

// A name below a folder, whatever the plugin says.
fs::path below(const fs::path& folder, const std::string& file) {
  const fs::path inner = fs::path(file).lexically_normal();
  if (inner.empty() || inner.is_absolute() || *inner.begin() == "..")
    throw Error(Exit::plugin, "data convert", "the plugin names a file outside --out: '" + file + "'");
  return folder / inner;
}

struct Listing {
  fs::path to;
  bool one_file;
  std::vector<ConvertItem> items = {};
  std::exception_ptr problem = {};

  // Called by the plugin, through which nothing may throw: the problem waits until its call has returned.
  static int32_t visit(void* context, const char* piece, const char* file) {
    auto& self = *static_cast<Listing*>(context);
    try {
      if (piece == nullptr || file == nullptr)
        throw Error(Exit::plugin, "data convert", "the plugin names a piece without its path or without its file");
      self.items.push_back({piece, self.one_file ? self.to : below(self.to, file)});
      return 0;
    } catch (...) {
      self.problem = std::current_exception();
      return 1;
    }
  }
};

}  // namespace

PieceConversion::PieceConversion(const Library& source, const std::vector<Override>& set)
    : source_(source),
      api_(require_convert(source)),
      table_(to_option_table(api_->options)),
      values_(checked(table_, set, source.id())),
      native_(table_, values_) {}

std::string PieceConversion::text() const {
  std::ostringstream text;
  // Another version of the plugin may write another form.
  text << source_.id() << " " << source_.plugin().version << " " << options_to_toml(table_, values_);
  return text.str();
}

std::vector<ConvertItem> PieceConversion::list(const fs::path& from, const fs::path& to,
                                               const ConvertRecord& record) const {
  require_apart(from, to);
  std::error_code failed;
  // A file becomes the file that was named, whatever name the plugin has for it.
  Listing listing{to, !fs::is_directory(from, failed)};
  hr_error error = no_error();
  const hr_status status = call(source_.id(), "convert.list", api_->list, source_.host(), native_.values(),
                                from.c_str(), &Listing::visit, static_cast<void*>(&listing), &error);
  // First: the status only repeats that the visit ended the listing.
  if (listing.problem) std::rethrow_exception(listing.problem);
  check(status, error, source_.id(), "looking for what to convert");
  look_for_done(listing.items, record);
  return std::move(listing.items);
}

void PieceConversion::write(const fs::path& from, const fs::path& piece, const fs::path& file) const {
  hr_error error = no_error();
  const hr_status status = call(source_.id(), "convert.write", api_->write, source_.host(), native_.values(),
                                from.c_str(), piece.c_str(), file.c_str(), &error);
  check(status, error, source_.id(), "converting " + piece.string(), Exit::cannot_write);
}

}  // namespace headroom
