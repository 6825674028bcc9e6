// A datasource plugin as C++: Source is immutable and shared by all threads, Reader belongs to one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "error.hpp"
#include "headroom/abi.h"
#include "headroom/sdk/fields.hpp"
#include "mutex.hpp"
#include "plugins/library.hpp"
#include "plugins/session.hpp"

namespace headroom {

using sdk::Channel;

// One named array of a sample. The C hr_field in owned form.
struct Field {
  std::string name, unit;
  DLDataType dtype{};
  std::vector<int64_t> shape;     // of one sample
  std::vector<std::string> axes;  // "" where unnamed; as many as shape
  double sample_rate_hz = 0.0;
  int channel_axis = -1;
  bool normalize = false;
  std::vector<Channel> channels;  // along channel_axis; empty: not told

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

// Where values of a field lie in the source's files, see hr_datasource.origin.
struct Origin {
  std::string path, dataset, member;  // member "": the plain elements
};

class Reader;

// One sample cannot be read, others can (HR_DATA_CORRUPT): what data.on_bad_sample = "skip" passes over.
class BadSample : public Error {
 public:
  explicit BadSample(const Error& problem) : Error(problem) {}
};

class Source : public std::enable_shared_from_this<Source> {
 public:
  // [control] Throws Error with the plugin's sentence; also when what it describes is inconsistent (no split, groups
  // that do not tile their split, unknown dtype, ...).
  static std::shared_ptr<const Source> open(const Library& library, const OptionValues& options,
                                            std::shared_ptr<Session> session = Session::of_process());
  // The same of a bare table, which lives for ever; `options` as the table declares them.
  static std::shared_ptr<const Source> open(const hr_datasource& api, std::string id, const hr_value* options,
                                            const hr_gc* gc = nullptr,
                                            std::shared_ptr<Session> session = Session::of_process());
  ~Source();

  const std::string& id() const { return id_; }
  Session& session() const { return *session_; }
  const std::vector<Field>& fields() const { return fields_; }
  const std::vector<std::string>& splits() const { return splits_; }  // as the layout defines them, or {"all"}
  uint64_t length(uint32_t split) const;                              // [any]
  const std::vector<Group>& groups(uint32_t split) const { return groups_.at(split); }  // tile [0, length)
  double cost(uint32_t split, uint64_t index) const;                                    // [any]
  std::vector<std::filesystem::path> files() const;
  // Whether augmented reads may depend on the sample's key; what is not told may.
  bool augments() const { return augments_; }
  std::vector<Origin> origins(uint32_t field) const;  // empty: not told
  Reader reader() const;                              // [any]
  // [control] headroom.gc's trim_source (0 without one) once no read is in flight; `level` is HR_TRIM_CACHES or
  // HR_TRIM_ALL. Returns the bytes the plugin says it released.
  int64_t trim(int level) const;

 private:
  friend class Reader;
  friend class Recording;
  Source() = default;
  std::shared_ptr<Session> session_;
  std::string id_;
  const hr_datasource* api_ = nullptr;
  const hr_gc* gc_ = nullptr;
  hr_source* handle_ = nullptr;
  bool augments_ = true;
  mutable SharedMutex reads_;  // reads share it, trim() has it alone
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
  // [worker] Fills `fields` ([source.fields().size()] of shape [n, field.shape...], data NULL where not wanted).
  // Error(data).
  void read(uint32_t split, std::span<const uint64_t> index, std::span<const uint64_t> key, bool augment,
            std::span<const DLTensor> fields);

 private:
  friend class Source;
  Reader(std::shared_ptr<const Source> source, hr_reader* handle) : source_(std::move(source)), handle_(handle) {}
  std::shared_ptr<const Source> source_;
  hr_reader* handle_ = nullptr;
};

}  // namespace headroom
