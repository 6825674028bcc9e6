// The host as a plugin sees it: log, files, names and attributes in HDF5 files, the ledger. Usable from any thread;
// failures are sdk::Error with the host's own sentence and status. A host without a service is HR_UNSUPPORTED.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headroom/readers.h"
#include "headroom/sdk/error.hpp"

namespace headroom::sdk {

// A name in a folder (is_container: a folder) or in a group of a file (is_container: a group).
struct Entry {
  std::string name;
  bool is_container = false;
};

// An attribute of a group or dataset: `type` is HR_I64, HR_F64 or HR_STRING; f64 is set for integers too.
struct Attribute {
  hr_type type = HR_STRING;
  int64_t i64 = 0;
  double f64 = 0.0;
  std::string string = {};

  static Attribute of(int64_t value) { return {HR_I64, value, static_cast<double>(value), {}}; }
  static Attribute of(double value) { return {HR_F64, 0, value, {}}; }
  static Attribute of(std::string value) { return {HR_STRING, 0, 0.0, std::move(value)}; }
};

// The size of a table in ABI 1.0: what every plugin and every host fills. A release that lengthens a table specialises
// this with the offset of its first new member, which is then read through HR_HAS.
template <class Table>
inline constexpr std::size_t size_of_1_0 = sizeof(Table);

// Cheap to copy; valid until the process ends. [any]
class Host {
 public:
  explicit Host(const hr_host* host) : host_(host) {}
  const hr_host* native() const { return host_; }

  // The table of service `id`, with all members of 1.0. Throws HR_UNSUPPORTED when the host lacks it.
  template <class Table>
  const Table& service(const char* id) const {
    const auto* table = static_cast<const Table*>(host_->get_service(host_, id));
    if (table == nullptr || table->struct_size < size_of_1_0<Table>) {
      throw Error(HR_UNSUPPORTED, "this host (" + std::string(host_->version) + ") lacks the service " + id +
                                      ", which the plugin needs");
    }
    return *table;
  }

  void debug(const std::string& message) const { log(HR_LOG_DEBUG, message); }
  void info(const std::string& message) const { log(HR_LOG_INFO, message); }
  void warn(const std::string& message) const { log(HR_LOG_WARN, message); }

  // For long loops: throws HR_CANCELLED once the run is asked to stop.
  void throw_if_cancelled() const {
    if (service<hr_cancel>(HR_CANCEL).cancelled(host_) != 0) throw Error(HR_CANCELLED, "cancelled");
  }

  // Adds to the bytes that the plugin holds as `owner` in the memory ledger; negative: freed.
  void account(const std::string& owner, int64_t delta_bytes) const {
    service<hr_memory>(HR_MEMORY).account(host_, owner.c_str(), delta_bytes);
  }

  // The most child processes that a source may have while it is open, all threads together (headroom/readers.h).
  // nullopt: the caller belongs to no run, or the host is an older one.
  std::optional<uint64_t> readers_at_once() const {
    const auto* table = static_cast<const hr_readers*>(host_->get_service(host_, HR_READERS));
    const uint64_t readers = table != nullptr && HR_HAS(table, at_once) ? table->at_once(host_) : 0;
    return readers > 0 ? std::optional(readers) : std::nullopt;
  }

  uint64_t file_size(const std::filesystem::path& file) const {
    hr_error error = no_error();
    uint64_t bytes = 0;
    require(service<hr_files>(HR_FILES).size(host_, file.c_str(), &bytes, &error), error);
    return bytes;
  }
  void pread(const std::filesystem::path& file, uint64_t offset, std::span<std::byte> to) const {
    hr_error error = no_error();
    require(service<hr_files>(HR_FILES).pread(host_, file.c_str(), offset, to.data(), to.size(), &error), error);
  }
  std::string read_text(const std::filesystem::path& file) const {
    std::string text(file_size(file), '\0');
    pread(file, 0, std::as_writable_bytes(std::span(text)));
    return text;
  }
  // In byte order.
  std::vector<Entry> list_folder(const std::filesystem::path& folder) const {
    Listing listing;
    hr_error error = no_error();
    return listing.finish(service<hr_files>(HR_FILES).list(host_, folder.c_str(), &Listing::visit, &listing, &error),
                          error);
  }

  // The names directly below `group` of an HDF5 file, in byte order.
  std::vector<Entry> list_arrays(const std::filesystem::path& file, const std::string& group = "/") const {
    Listing listing;
    hr_error error = no_error();
    return listing.finish(
        service<hr_arrays>(HR_ARRAYS).list(host_, file.c_str(), group.c_str(), &Listing::visit, &listing, &error),
        error);
  }
  // A dataset of strings, at most 2^20 of them.
  std::vector<std::string> strings(const std::filesystem::path& file, const std::string& dataset) const {
    Texts texts;
    hr_error error = no_error();
    const hr_status status =
        service<hr_strings>(HR_STRINGS).read(host_, file.c_str(), dataset.c_str(), &Texts::visit, &texts, &error);
    return texts.finish(status, error);
  }
  // An attribute that is one string or a list of them. nullopt when `object` has none of that name.
  std::optional<std::vector<std::string>> attribute_strings(const std::filesystem::path& file,
                                                            const std::string& object, const std::string& name) const {
    Texts texts;
    hr_error error = no_error();
    const hr_status status =
        service<hr_strings>(HR_STRINGS)
            .attribute(host_, file.c_str(), object.c_str(), name.c_str(), &Texts::visit, &texts, &error);
    if (status == HR_NOT_FOUND) return std::nullopt;
    return texts.finish(status, error);
  }
  // Like attribute_strings(); but a single string that is a written list, ["a", "b"], gives the words of that list.
  std::optional<std::vector<std::string>> attribute_names(const std::filesystem::path& file, const std::string& object,
                                                          const std::string& name) const {
    const auto strings = attribute_strings(file, object, name);
    if (!strings || strings->size() != 1 || strings->front().find('"') == std::string::npos) return strings;
    const std::string& text = strings->front();
    std::vector<std::string> words;
    for (std::size_t begin = text.find('"'); begin != std::string::npos;) {
      const std::size_t end = text.find('"', begin + 1);
      if (end == std::string::npos) break;
      words.push_back(text.substr(begin + 1, end - begin - 1));
      begin = text.find('"', end + 1);
    }
    return words;
  }
  // One number or one string, which is cut at 511 bytes. nullopt when `object` has no attribute of that name.
  std::optional<Attribute> attribute(const std::filesystem::path& file, const std::string& object,
                                     const std::string& name) const {
    hr_error error = no_error();
    hr_attribute value{};
    value.struct_size = sizeof value;
    const hr_status status =
        service<hr_arrays>(HR_ARRAYS).attribute(host_, file.c_str(), object.c_str(), name.c_str(), &value, &error);
    if (status == HR_NOT_FOUND) return std::nullopt;
    require(status, error);
    return Attribute{value.type, value.i64, value.f64, value.string};
  }

 private:
  // The host calls visit(), which must not throw: an exception waits here until the service returns.
  struct Listing {
    std::vector<Entry> entries;
    std::exception_ptr problem;

    static int32_t visit(void* context, const char* name, int32_t is_container) {
      auto* self = static_cast<Listing*>(context);
      try {
        self->entries.push_back({name, is_container != 0});
        return 0;
      } catch (...) {
        self->problem = std::current_exception();
        return 1;
      }
    }
    std::vector<Entry> finish(hr_status status, const hr_error& error) {
      if (problem) std::rethrow_exception(problem);
      require(status, error);
      return std::move(entries);
    }
  };

  struct Texts {
    std::vector<std::string> values;
    std::exception_ptr problem;

    static int32_t visit(void* context, const char* value) {
      auto* self = static_cast<Texts*>(context);
      try {
        self->values.emplace_back(value);
        return 0;
      } catch (...) {
        self->problem = std::current_exception();
        return 1;
      }
    }
    std::vector<std::string> finish(hr_status status, const hr_error& error) {
      if (problem) std::rethrow_exception(problem);
      require(status, error);
      return std::move(values);
    }
  };

  void log(int32_t level, const std::string& message) const {
    const auto* table = static_cast<const hr_log*>(host_->get_service(host_, HR_LOG));
    if (table != nullptr && table->enabled(host_, level) != 0) table->write(host_, level, message.c_str());
  }

  const hr_host* host_;
};

}  // namespace headroom::sdk
