#include "plugins/source.hpp"

#include <algorithm>

#include "error.hpp"
#include "plugins/call.hpp"
#include "plugins/field_checks.hpp"

namespace headroom {

namespace {

// Limits far above any use. A count beyond them is a bug of the plugin and must not exhaust memory here.
constexpr uint32_t kMostFields = 1024, kMostSplits = 64;
constexpr uint64_t kMostGroups = 10'000'000, kMostFiles = 10'000'000;
constexpr std::size_t kMostOrigins = 10'000'000;

// Reads the description of an open source and refuses what is inconsistent: a plugin may be wrong in every number.
class SourceDescription {
 public:
  SourceDescription(const std::string& id, const hr_datasource& api, hr_source* handle)
      : id_(id), api_(api), handle_(handle) {}

  std::vector<Field> fields() {
    const uint32_t count = call(id_, "field_count", api_.field_count, handle_);
    if (count == 0 || count > kMostFields)
      refuse("it declares " + std::to_string(count) + " fields; 1 to 1024 are allowed");
    std::vector<Field> result;
    for (uint32_t i = 0; i < count; ++i) {
      hr_error error = no_error();
      hr_field native{};
      native.struct_size = sizeof native;
      // What holds where the plugin leaves it alone.
      native.channel_axis = -1;
      check(call(id_, "field", api_.field, handle_, i, &native, &error), error, id_,
            "describing field " + std::to_string(i));
      // Before it is copied: no number of it can be trusted yet.
      if (const std::string flaw = flaw_of_field(native, i); !flaw.empty()) refuse(flaw);
      result.push_back(Field::from(native));
      require_new_name(result);
    }
    return result;
  }

  std::vector<std::string> splits() {
    const uint32_t count = call(id_, "split_count", api_.split_count, handle_);
    if (count == 0 || count > kMostSplits)
      refuse("it declares " + std::to_string(count) + " splits; 1 to 64 are allowed");
    std::vector<std::string> result;
    for (uint32_t i = 0; i < count; ++i) {
      const char* name = call(id_, "split", api_.split, handle_, i);
      if (name == nullptr || name[0] == '\0') refuse("its split " + std::to_string(i) + " has no name");
      if (std::ranges::find(result, name) != result.end())
        refuse("it declares split '" + std::string(name) + "' twice");
      result.emplace_back(name);
    }
    return result;
  }

  std::vector<Group> groups(uint32_t split, const std::string& split_name) {
    const uint64_t length = call(id_, "length", api_.length, handle_, split);
    const uint64_t count = call(id_, "group_count", api_.group_count, handle_, split);
    // Before memory is reserved for that many: no group is empty.
    if (count > length)
      refuse("split '" + split_name + "' has " + std::to_string(count) + " groups for " + std::to_string(length) +
             " samples");
    if (count > kMostGroups)
      refuse("split '" + split_name + "' has " + std::to_string(count) + " groups; at most 10000000 are allowed");
    std::vector<Group> result;
    result.reserve(count);
    uint64_t next = 0;
    for (uint64_t i = 0; i < count; ++i) {
      hr_error error = no_error();
      hr_group native{sizeof(hr_group), 0, nullptr, 0, 0};
      check(call(id_, "group", api_.group, handle_, split, i, &native, &error), error, id_,
            "describing group " + std::to_string(i));
      // Compared without adding: first + count of a wrong plugin may overflow.
      if (native.first != next || native.count == 0 || native.count > length - next) {
        refuse("group " + std::to_string(i) + " of split '" + split_name + "' covers samples [" +
               std::to_string(native.first) + ", " + std::to_string(native.first + native.count) +
               "); groups must tile [0, " + std::to_string(length) + ") in order");
      }
      result.push_back({native.name != nullptr ? native.name : "", native.first, native.count});
      next += native.count;
    }
    if (next != length) {
      refuse("the groups of split '" + split_name + "' end at sample " + std::to_string(next) + "; the split has " +
             std::to_string(length));
    }
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& sentence) const {
    throw Error(Exit::plugin, id_, "the source describes itself inconsistently: " + sentence);
  }

  void require_new_name(const std::vector<Field>& fields) const {
    for (std::size_t i = 0; i + 1 < fields.size(); ++i) {
      if (fields[i].name == fields.back().name) refuse("it declares field '" + fields[i].name + "' twice");
    }
  }

  std::string id_;
  const hr_datasource& api_;
  hr_source* handle_;
};

}  // namespace

std::shared_ptr<const Source> Source::open(const Library& library, const OptionValues& options,
                                           std::shared_ptr<Session> session) {
  const hr_datasource* api = library.datasource();
  if (api == nullptr)
    throw Error(Exit::bad_input, library.id(), "this plugin is not a datasource: it offers no " HR_DATASOURCE);
  // The plugin borrows the values until open() returns.
  const NativeOptions native(to_option_table(api->options), options);
  return open(*api, library.id(), native.values(), library.gc(), std::move(session), library.class_names(),
              library.positions());
}

std::shared_ptr<const Source> Source::open(const hr_datasource& api, std::string id, const hr_value* options,
                                           const hr_gc* gc, std::shared_ptr<Session> session,
                                           const hr_class_names* class_names, const hr_positions* positions) {
  // Its destructor closes what the plugin opens, also when a check below throws.
  std::shared_ptr<Source> source(new Source);
  source->session_ = std::move(session);
  source->id_ = std::move(id);
  source->api_ = &api;
  source->gc_ = gc;
  source->class_names_ = class_names;
  source->positions_ = positions;
  hr_error error = no_error();
  check(call(source->id_, "open", api.open, source->session_->host_for(source->id_), options, &source->handle_, &error),
        error, source->id_, "opening the data source");
  if (source->handle_ == nullptr)
    throw Error(Exit::plugin, source->id_, "opening the data source gave neither a source nor an error");
  SourceDescription description(source->id_, api, source->handle_);
  source->fields_ = description.fields();
  source->splits_ = description.splits();
  for (uint32_t split = 0; split < source->splits_.size(); ++split) {
    source->groups_.push_back(description.groups(split, source->splits_[split]));
  }
  if (api.traits != nullptr)
    source->augments_ = (call(source->id_, "traits", api.traits, source->handle_) & HR_SOURCE_NO_AUGMENT) == 0;
  return source;
}

Source::~Source() {
  if (handle_ != nullptr) call_quietly(id_, "close", api_->close, handle_);
}

uint64_t Source::length(uint32_t split) const {
  const std::vector<Group>& groups = groups_.at(split);
  // Groups tile the split, so the last one ends where the split does.
  return groups.empty() ? 0 : groups.back().first + groups.back().count;
}

double Source::cost(uint32_t split, uint64_t index) const {
  return api_->cost != nullptr ? call(id_, "cost", api_->cost, handle_, split, index) : 1.0;
}

std::vector<std::filesystem::path> Source::files() const {
  const uint64_t count = call(id_, "file_count", api_->file_count, handle_);
  if (count > kMostFiles)
    throw Error(Exit::plugin, id_,
                "the source names " + std::to_string(count) + " files; at most 10000000 are allowed");
  std::vector<std::filesystem::path> result;
  for (uint64_t i = 0; i < count; ++i) {
    const char* path = call(id_, "file", api_->file, handle_, i);
    if (path == nullptr)
      throw Error(Exit::plugin, id_, "file " + std::to_string(i) + " of " + std::to_string(count) + " has no path");
    result.emplace_back(path);
  }
  return result;
}

std::vector<Origin> Source::origins(uint32_t field) const {
  std::vector<Origin> result;
  if (api_->origin == nullptr) return result;
  while (true) {
    hr_error error = no_error();
    hr_origin origin{};
    origin.struct_size = sizeof origin;
    const hr_status status =
        call(id_, "origin", api_->origin, handle_, field, static_cast<uint64_t>(result.size()), &origin, &error);
    // There is no count of origins: this ends the list, as abi.h says.
    if (status == HR_NOT_FOUND) return result;
    check(status, error, id_, "describing where field " + std::to_string(field) + " lies");
    if (origin.path == nullptr || origin.dataset == nullptr)
      throw Error(Exit::plugin, id_, "an origin of field " + std::to_string(field) + " has no path or no dataset");
    if (result.size() == kMostOrigins)
      throw Error(Exit::plugin, id_, "field " + std::to_string(field) + " has more than 10000000 origins");
    result.push_back({origin.path, origin.dataset, origin.member != nullptr ? origin.member : ""});
  }
}

std::vector<std::string> Source::class_names(uint32_t field) const {
  std::vector<std::string> result;
  if (class_names_ == nullptr) return result;
  while (true) {
    hr_error error = no_error();
    const char* name = nullptr;
    const hr_status status =
        call(id_, "name", class_names_->name, handle_, field, static_cast<uint64_t>(result.size()), &name, &error);
    // There is no count of classes: this ends the list, as classes.h says.
    if (status == HR_NOT_FOUND) return result;
    check(status, error, id_, "naming the classes of field " + std::to_string(field));
    if (name == nullptr)
      throw Error(Exit::plugin, id_,
                  "class " + std::to_string(result.size()) + " of field '" + fields_.at(field).name + "' has no name");
    if (result.size() == HR_MOST_CLASSES)
      throw Error(Exit::plugin, id_, "field '" + fields_.at(field).name + "' has more than 4096 classes");
    result.emplace_back(name);
  }
}

std::optional<RecordedRows> Source::recorded_rows(uint32_t field, uint32_t split, uint64_t index) const {
  if (positions_ == nullptr) return std::nullopt;
  hr_error error = no_error();
  hr_position position{};
  position.struct_size = sizeof position;
  const hr_status status = call(id_, "position", positions_->position, handle_, field, split, index, &position, &error);
  if (status == HR_NOT_FOUND) return std::nullopt;
  const Field& of = fields_.at(field);
  const std::string what = "sample " + std::to_string(index) + " of field '" + of.name + "'";
  check(status, error, id_, "telling where " + what + " lies");
  if (position.rows == 0 || static_cast<uint64_t>(of.elements()) % position.rows != 0) {
    throw Error(Exit::plugin, id_,
                what + " shows " + std::to_string(position.rows) + " rows, which its " + std::to_string(of.elements()) +
                    " elements cannot be divided into");
  }
  return RecordedRows{position.first, position.rows, position.length};
}

Reader Source::reader() const {
  hr_reader* handle = nullptr;
  hr_error error = no_error();
  check(call(id_, "reader_open", api_->reader_open, handle_, &handle, &error), error, id_, "opening a reader");
  if (handle == nullptr) throw Error(Exit::plugin, id_, "opening a reader gave neither a reader nor an error");
  return {shared_from_this(), handle};
}

int64_t Source::trim(int level) const {
  if (gc_ == nullptr || gc_->trim_source == nullptr) return 0;
  // The contract of trim_source: no read is running.
  const ExclusiveLock alone(reads_);
  return static_cast<int64_t>(call(id_, "trim_source", gc_->trim_source, handle_, level));
}

Reader::Reader(Reader&& other) noexcept
    : source_(std::move(other.source_)), handle_(std::exchange(other.handle_, nullptr)) {}

// Swaps: `other` closes what this reader had.
Reader& Reader::operator=(Reader&& other) noexcept {
  std::swap(source_, other.source_);
  std::swap(handle_, other.handle_);
  return *this;
}

Reader::~Reader() {
  if (handle_ != nullptr) call_quietly(source_->id_, "reader_close", source_->api_->reader_close, handle_);
}

void Reader::read(uint32_t split, std::span<const uint64_t> index, std::span<const uint64_t> key, bool augment,
                  std::span<const DLTensor> fields) {
  const Source& source = *source_;
  if (index.size() != key.size() || fields.size() != source.fields_.size()) {
    throw Error(Exit::bug, source.id_, "a read needs one key a sample and one slot a field");
  }
  const hr_read request{sizeof(hr_read), augment ? HR_READ_AUGMENT : 0u,
                        split,           static_cast<uint32_t>(fields.size()),
                        index.size(),    index.data(),
                        key.data(),      fields.data()};
  hr_error error = no_error();
  const hr_status status = [&] {
    // trim() waits for this to end.
    const SharedLock reading(source.reads_);
    return call(source.id_, "read", source.api_->read, handle_, &request, &error);
  }();
  try {
    check(status, error, source.id_, "reading samples");
  } catch (const Error& problem) {
    // Only this status says that other samples can be read.
    if (status == HR_DATA_CORRUPT) throw BadSample(problem);
    throw;
  }
}

}  // namespace headroom
