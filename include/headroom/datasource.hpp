// The C++ SDK for datasource plugins. Write an ordinary class with the members below and name it in HEADROOM_PLUGIN;
// the SDK makes the C tables of abi.h. Header-only; needs no LibTorch.
//
//   class Source {
//    public:
//     static OptionList options();                        // keys of [data.options]; may be left out
//     Source(const Host& host, const Options& options);   // reads metadata only
//     std::vector<Field> fields() const;
//     std::vector<std::string> splits() const;            // left out: one split "all", and the host divides its groups
//     uint64_t length(uint32_t split) const;              // without the argument: of the one split
//     std::vector<Group> groups(uint32_t split) const;    // tile [0, length); {} or left out: each sample is its own
//                                                         // group; without the argument: of the one split
//     std::vector<std::filesystem::path> files() const;   // the files that samples depend on; left out: none
//     double cost(uint32_t split, uint64_t index) const;  // memory of a sample, relative to others; left out: all 1
//     void read(const ReadRequest& request) const;        // fills the slots; many threads call it at once
//     Reader make_reader() const;                         // instead of read(): an object with
//                                                         // `void read(const ReadRequest&)` for each thread
//     bool augments() const;                              // false: read() never draws from key(i), so the host may
//                                                         // cache training samples; left out: true
//     std::vector<Origin> origins(uint32_t field) const;  // the datasets of a field to standardise; left out: unknown.
//                                                         // hr_datasource.origin says what this promises
//     std::vector<std::string> class_names(uint32_t field) const;   // what the values 0, 1, ... of an integer field
//                                                         // mean; {}: it has no classes; left out: no field has
//     std::optional<Position> position(uint32_t field, uint32_t split, uint64_t index) const;   // [any] which rows of
//                                                         // its recording the sample shows; left out: nobody knows.
//                                                         // hr_positions says what this promises
//     uint64_t trim(int level);                           // left out: nothing to give back
//     static std::vector<std::string> cost_options();     // options that never change what is read: no part of a
//                                                         // run's identity; left out: none
//     static OptionList synth_options();                  // keys of [data.synth]; with synthesise()
//     static void synthesise(const Host& host, const Options& options, const std::filesystem::path& folder);
//   };
//   HEADROOM_PLUGIN(.id = "mine", .version = "1.0", .summary = "...",
//                   .interfaces = {headroom::sdk::datasource<Source>()});
//
// The constructor is [control]; read() and the other const members are [any]; trim() runs while no read does. Any
// member may throw sdk::Error. fields(), splits(), groups(), files(), origins() and class_names() are called once,
// after construction.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headroom/classes.h"
#include "headroom/costs.h"
#include "headroom/positions.h"
#include "headroom/sdk/array_writer.hpp"
#include "headroom/sdk/arrays.hpp"
#include "headroom/sdk/blocks.hpp"
#include "headroom/sdk/draws.hpp"
#include "headroom/sdk/fields.hpp"
#include "headroom/sdk/finite.hpp"
#include "headroom/sdk/host.hpp"
#include "headroom/sdk/options.hpp"
#include "headroom/sdk/plugin.hpp"
#include "headroom/sdk/read_request.hpp"

namespace headroom::sdk {

// Consecutive samples that must stay in one split: a recording, a session, a clip.
struct Group {
  std::string name;
  uint64_t first = 0, count = 0;
};

// A dataset that a field is read from as it is stored, see hr_datasource.origin.
struct Origin {
  std::filesystem::path file;
  std::string dataset, member;  // member "": the plain elements
};

// The rows of a recording that a field of a sample shows, see hr_position.
struct Position {
  int64_t first = 0;
  uint64_t rows = 1, length = 0;
};

namespace detail {

template <class Result>
concept IsGroups = std::convertible_to<Result, std::vector<Group>>;

// HasGroups<T>: groups(). HasGroups<T, uint32_t>: groups(split). So below.
template <class T, class... Split>
concept HasGroups = requires(const T& source, Split... split) {
  { source.groups(split...) } -> IsGroups;
};

template <class T>
concept HasGroupsOfSplit = HasGroups<T, uint32_t>;

// Members that were meant to be groups(): without it, each sample would be a group of its own, and neighbours would
// fall into different splits.
template <class T, class... Split>
concept HasGroup = requires(const T& source, Split... split) {
  { source.group(split...) } -> IsGroups;
};

template <class T, class... Split>
concept HasGetGroups = requires(const T& source, Split... split) {
  { source.get_groups(split...) } -> IsGroups;
};

// hr_source behind the C table: the author's object and its description.
template <class T>
struct SourceBox {
  static_assert(HasGroups<T> || HasGroupsOfSplit<T> ||
                    !(HasGroup<T> || HasGroup<T, uint32_t> || HasGetGroups<T> || HasGetGroups<T, uint32_t>),
                "the member's name is groups: std::vector<Group> groups(uint32_t split) const");

  T source;
  std::vector<Field> fields;
  std::vector<std::string> splits;
  std::vector<std::vector<Group>> groups;
  std::vector<std::string> files;
  std::vector<std::vector<Origin>> origins;
  std::vector<std::vector<std::string>> class_names;  // of each field
  std::vector<hr_field> native_fields;
  std::vector<std::vector<hr_channel>> native_channels;

  SourceBox(const Host& host, const Options& options) : source(make(host, options)), fields(source.fields()) {
    if constexpr (requires { source.splits(); }) {
      splits = source.splits();
    } else {
      splits = {"all"};
    }
    if constexpr (requires { source.groups(0u); }) {
      for (uint32_t split = 0; split < splits.size(); ++split) groups.push_back(source.groups(split));
    } else if constexpr (HasGroups<T>) {
      if (splits.size() != 1) throw Error(HR_INTERNAL, "groups() of a source with several splits takes the split");
      groups.push_back(source.groups());
    }
    if constexpr (requires { source.files(); }) {
      for (const auto& file : source.files()) files.push_back(std::filesystem::path(file).string());
    }
    if constexpr (requires { source.origins(0u); }) {
      for (uint32_t field = 0; field < fields.size(); ++field) origins.push_back(source.origins(field));
    }
    if constexpr (requires { source.class_names(0u); }) {
      for (uint32_t field = 0; field < fields.size(); ++field) class_names.push_back(source.class_names(field));
    }
    native_channels.resize(fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i) native_fields.push_back(fields[i].native(native_channels[i]));
  }

  static T make(const Host& host, const Options& options) {
    if constexpr (std::constructible_from<T, const Host&, const Options&>) {
      return T(host, options);
    } else {
      return T(options);
    }
  }

  static const SourceBox* from(const hr_source* source) { return reinterpret_cast<const SourceBox*>(source); }
  static SourceBox* from(hr_source* source) { return reinterpret_cast<SourceBox*>(source); }

  bool has_groups(uint32_t split) const { return split < groups.size() && !groups[split].empty(); }

  uint64_t length(uint32_t split) const {
    if constexpr (requires { source.length(split); }) {
      return source.length(split);
    } else {
      return source.length();
    }
  }
};

template <class T>
concept HasReader = requires(const T& source) {
  source.make_reader();
};

// hr_reader behind the C table.
template <class T>
struct ReaderBox {
  const T* source;
  void read(const ReadRequest& request) { source->read(request); }
  static ReaderBox* open(const T& source) { return new ReaderBox{&source}; }
};

template <HasReader T>
struct ReaderBox<T> {
  decltype(std::declval<const T&>().make_reader()) reader;
  void read(const ReadRequest& request) { reader.read(request); }
  static ReaderBox* open(const T& source) { return new ReaderBox{source.make_reader()}; }
};

template <class T>
struct SourceTable {
  using Box = SourceBox<T>;

  static hr_status open(const hr_host* host, const hr_value* values, hr_source** out, hr_error* error) noexcept {
    return guard(error, [&] {
      auto box = std::make_unique<Box>(Host(host), Options(option_table<T>(), values));
      *out = reinterpret_cast<hr_source*>(box.release());
    });
  }
  static void close(hr_source* source) noexcept { delete Box::from(source); }
  static uint32_t field_count(const hr_source* source) noexcept {
    return static_cast<uint32_t>(Box::from(source)->fields.size());
  }
  static hr_status field(const hr_source* source, uint32_t i, hr_field* out, hr_error* error) noexcept {
    return guard(error, [&] {
      if (i >= field_count(source)) throw Error(HR_NOT_FOUND, "no such field");
      store(out, Box::from(source)->native_fields[i]);
    });
  }
  static uint32_t split_count(const hr_source* source) noexcept {
    return static_cast<uint32_t>(Box::from(source)->splits.size());
  }
  static const char* split(const hr_source* source, uint32_t i) noexcept {
    return i < split_count(source) ? Box::from(source)->splits[i].c_str() : nullptr;
  }
  static uint64_t length(const hr_source* source, uint32_t split) noexcept { return Box::from(source)->length(split); }
  static uint64_t group_count(const hr_source* source, uint32_t split) noexcept {
    const Box& box = *Box::from(source);
    if (split >= box.splits.size()) return 0;
    return box.has_groups(split) ? box.groups[split].size() : box.length(split);
  }
  static hr_status group(const hr_source* source, uint32_t split, uint64_t i, hr_group* out, hr_error* error) noexcept {
    return guard(error, [&] {
      const Box& box = *Box::from(source);
      if (i >= group_count(source, split)) throw Error(HR_NOT_FOUND, "no such group");
      if (!box.has_groups(split)) {
        store(out, {sizeof(hr_group), 0, "", i, 1});
      } else {
        const Group& group = box.groups[split][i];
        store(out, {sizeof(hr_group), 0, group.name.c_str(), group.first, group.count});
      }
    });
  }
  static double cost(const hr_source* source, uint32_t split, uint64_t index) noexcept {
    if constexpr (requires { Box::from(source)->source.cost(split, index); }) {
      return Box::from(source)->source.cost(split, index);
    } else {
      return 1.0;
    }
  }
  static uint64_t file_count(const hr_source* source) noexcept { return Box::from(source)->files.size(); }
  static const char* file(const hr_source* source, uint64_t i) noexcept {
    return i < file_count(source) ? Box::from(source)->files[i].c_str() : nullptr;
  }
  static hr_status reader_open(hr_source* source, hr_reader** out, hr_error* error) noexcept {
    return guard(error, [&] { *out = reinterpret_cast<hr_reader*>(ReaderBox<T>::open(Box::from(source)->source)); });
  }
  static void reader_close(hr_reader* reader) noexcept { delete reinterpret_cast<ReaderBox<T>*>(reader); }
  static hr_status read(hr_reader* reader, const hr_read* request, hr_error* error) noexcept {
    return guard(error, [&] { reinterpret_cast<ReaderBox<T>*>(reader)->read(ReadRequest(request)); });
  }
  static uint32_t traits(const hr_source* source) noexcept {
    if constexpr (requires { Box::from(source)->source.augments(); }) {
      return Box::from(source)->source.augments() ? 0u : HR_SOURCE_NO_AUGMENT;
    } else {
      return 0;
    }
  }
  static hr_status origin(const hr_source* source, uint32_t field, uint64_t i, hr_origin* out,
                          hr_error* error) noexcept {
    const auto& all = Box::from(source)->origins;
    if (field >= all.size() || i >= all[field].size()) return fail(error, HR_NOT_FOUND, "no such origin");
    return guard(error, [&] {
      const Origin& found = all[field][i];
      store(out, {sizeof(hr_origin), 0, found.file.c_str(), found.dataset.c_str(),
                  found.member.empty() ? nullptr : found.member.c_str()});
    });
  }
  static hr_status class_name(const hr_source* source, uint32_t field, uint64_t value, const char** out,
                              hr_error* error) noexcept {
    const auto& all = Box::from(source)->class_names;
    if (field >= all.size() || value >= all[field].size()) return fail(error, HR_NOT_FOUND, "no such class");
    *out = all[field][value].c_str();
    return HR_OK;
  }
  static hr_status position(const hr_source* source, uint32_t field, uint32_t split, uint64_t index, hr_position* out,
                            hr_error* error) noexcept {
    return guard(error, [&] {
      const std::optional<Position> found = Box::from(source)->source.position(field, split, index);
      if (!found) throw Error(HR_NOT_FOUND, "this field shows no rows of a recording");
      store(out, {sizeof(hr_position), 0, found->first, found->rows, found->length});
    });
  }
  // Made once and kept for ever.
  static const hr_cost_options* cost_options() {
    static const auto* names = new std::vector<std::string>(T::cost_options());
    static const auto* pointers = [] {
      auto* list = new std::vector<const char*>;
      for (const std::string& name : *names) list->push_back(name.c_str());
      list->push_back(nullptr);
      return list;
    }();
    static const hr_cost_options table{sizeof(hr_cost_options), 0, pointers->data()};
    return &table;
  }
  static uint64_t trim(hr_source* source, int32_t level) noexcept {
    if constexpr (requires(T & object) { object.trim(level); }) {
      uint64_t freed = 0;
      guard(nullptr, [&] { freed = Box::from(source)->source.trim(level); });
      return freed;
    } else {
      return 0;
    }
  }

  static const hr_options* synth_options() {
    static const OptionStorage* storage = new OptionStorage(T::synth_options());
    return storage->table();
  }
  static hr_status synthesise(const hr_host* host, const hr_value* values, const char* folder,
                              hr_error* error) noexcept {
    return guard(error, [&] { T::synthesise(Host(host), Options(synth_options(), values), folder); });
  }

  static const void* find(std::string_view id) {
    if (id == HR_DATASOURCE) {
      static const hr_datasource table{sizeof(hr_datasource),
                                       0,
                                       option_table<T>(),
                                       open,
                                       close,
                                       field_count,
                                       field,
                                       split_count,
                                       split,
                                       length,
                                       group_count,
                                       group,
                                       cost,
                                       file_count,
                                       file,
                                       reader_open,
                                       reader_close,
                                       read,
                                       traits,
                                       origin};
      return &table;
    }
    if constexpr (requires { &T::synthesise; }) {
      if (id == HR_SYNTH) {
        static const hr_synth table{sizeof(hr_synth), 0, synth_options(), synthesise};
        return &table;
      }
    }
    if constexpr (requires(T & object) { object.class_names(0u); }) {
      if (id == HR_CLASS_NAMES) {
        static const hr_class_names table{sizeof(hr_class_names), 0, class_name};
        return &table;
      }
    }
    if constexpr (requires { T::cost_options(); }) {
      if (id == HR_COST_OPTIONS) return cost_options();
    }
    if constexpr (requires(const T& object) { object.position(0u, 0u, uint64_t{0}); }) {
      if (id == HR_POSITIONS) {
        static const hr_positions table{sizeof(hr_positions), 0, position};
        return &table;
      }
    }
    return nullptr;
  }
};

}  // namespace detail

// The interfaces of a datasource class, for HEADROOM_PLUGIN.
template <class T>
constexpr Interface datasource() {
  Interface interface { .find = &detail::SourceTable<T>::find };
  if constexpr (requires(T & object) { object.trim(0); }) interface.trim_source = &detail::SourceTable<T>::trim;
  return interface;
}

}  // namespace headroom::sdk
