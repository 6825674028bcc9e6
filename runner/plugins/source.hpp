// A datasource plugin as C++. A Source is immutable and shared by all threads; a Reader belongs to one thread at a
// time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "error.hpp"
#include "headroom/classes.h"
#include "headroom/positions.h"
#include "headroom/sdk/fields.hpp"
#include "mutex.hpp"
#include "plugins/library.hpp"
#include "plugins/session.hpp"

namespace headroom {

using sdk::Channel;

// hr_field that owns its text: one named array of every sample.
struct Field {
  std::string name, unit;
  DLDataType dtype{};
  std::vector<int64_t> shape;     // of one sample
  std::vector<std::string> axes;  // "" where unnamed; as many as shape
  double sample_rate_hz = 0.0;
  int channel_axis = -1;
  bool normalize = false;
  std::vector<Channel> channels;  // along channel_axis; empty: unknown

  int64_t elements() const;  // of one sample
  int64_t bytes() const;     // of one sample
  static Field from(const hr_field& field);
  hr_field native(std::vector<hr_channel>& native_channels) const;  // borrows from both
};

std::string dtype_name(DLDataType dtype);  // "float32", "uint8", ...

struct Group {
  std::string name;
  uint64_t first = 0, count = 0;
};

// A dataset that a field is read from as it is stored, see hr_datasource.origin.
struct Origin {
  std::string path, dataset, member;  // member "": the plain elements
};

// The rows of a recording that a field of one sample shows; those below 0 and from `length` on are padding.
struct RecordedRows {
  int64_t first = 0;
  uint64_t rows = 1, length = 0;
};

class Reader;

// One sample cannot be read, others can (HR_DATA_CORRUPT). With data.on_bad_sample = "skip" the run goes on without it.
class BadSample : public Error {
 public:
  explicit BadSample(const Error& problem) : Error(problem) {}
};

class Source : public std::enable_shared_from_this<Source> {
 public:
  // [control] Error with the plugin's sentence, or Error(plugin) if its description is inconsistent: no split, groups
  // with gaps, an unknown dtype, ...
  static std::shared_ptr<const Source> open(const Library& library, const OptionValues& options,
                                            std::shared_ptr<Session> session = Session::of_process());
  // The same for a table without a library; `api` lives for ever, `options` has the values that it declares.
  static std::shared_ptr<const Source> open(const hr_datasource& api, std::string id, const hr_value* options,
                                            const hr_gc* gc = nullptr,
                                            std::shared_ptr<Session> session = Session::of_process(),
                                            const hr_class_names* class_names = nullptr,
                                            const hr_positions* positions = nullptr);
  ~Source();

  const std::string& id() const { return id_; }
  Session& session() const { return *session_; }
  const std::vector<Field>& fields() const { return fields_; }
  const std::vector<std::string>& splits() const { return splits_; }  // as the layout defines them, or {"all"}
  uint64_t length(uint32_t split) const;                              // [any]
  const std::vector<Group>& groups(uint32_t split) const { return groups_.at(split); }  // tile [0, length)
  double cost(uint32_t split, uint64_t index) const;                                    // [any]
  std::vector<std::filesystem::path> files() const;
  // Whether augmented reads may depend on the sample's key. False only if the plugin says HR_SOURCE_NO_AUGMENT.
  bool augments() const { return augments_; }
  std::vector<Origin> origins(uint32_t field) const;  // empty: unknown. Error(plugin)
  // What the values 0, 1, ... of a field mean; empty: it has no classes, or they have no names. Error(plugin)
  std::vector<std::string> class_names(uint32_t field) const;
  // [any] Of its group's recording; nullopt: the source does not say, or the field shows no rows. Error(plugin)
  std::optional<RecordedRows> recorded_rows(uint32_t field, uint32_t split, uint64_t index) const;
  Reader reader() const;  // [any] Error with the plugin's sentence
  // [control] Waits for running reads, then calls headroom.gc's trim_source with HR_TRIM_CACHES or HR_TRIM_ALL. Returns
  // the bytes that the plugin says it released; 0 without the interface.
  int64_t trim(int level) const;

 private:
  friend class Reader;
  friend class Recording;
  Source() = default;
  std::shared_ptr<Session> session_;
  std::string id_;
  const hr_datasource* api_ = nullptr;
  const hr_gc* gc_ = nullptr;
  const hr_class_names* class_names_ = nullptr;
  const hr_positions* positions_ = nullptr;
  hr_source* handle_ = nullptr;
  bool augments_ = true;
  mutable SharedMutex reads_;  // shared by reads, exclusive for trim()
  std::vector<Field> fields_;
  std::vector<std::string> splits_;
  std::vector<std::vector<Group>> groups_;
};

// Move-only; closes itself. Keeps its Source alive.
class Reader {
 public:
  Reader(Reader&& other) noexcept;
  Reader& operator=(Reader&& other) noexcept;
  ~Reader();
  // [worker] Fills `fields`: one slot a field of the source, of shape [index.size(), field.shape...] in host memory;
  // data NULL: not wanted. `index` and `key` have one entry a sample. BadSample, or Error with the plugin's sentence.
  void read(uint32_t split, std::span<const uint64_t> index, std::span<const uint64_t> key, bool augment,
            std::span<const DLTensor> fields);

 private:
  friend class Source;
  Reader(std::shared_ptr<const Source> source, hr_reader* handle) : source_(std::move(source)), handle_(handle) {}
  std::shared_ptr<const Source> source_;
  hr_reader* handle_ = nullptr;
};

}  // namespace headroom
