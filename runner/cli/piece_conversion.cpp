#include "cli/piece_conversion.hpp"

#include <exception>
#include <sstream>
#include <utility>

#include "config/document.hpp"
#include "error.hpp"
#include "plugins/call.hpp"

namespace headroom {

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
