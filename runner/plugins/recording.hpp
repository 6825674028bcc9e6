// A recording to predict on, opened with a source: the source's side of headroom.predict/1.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "plugins/source.hpp"

namespace headroom {

// Whether this recording lacks the field (all extents 0).
bool is_missing(const Field& field);

// Keeps its Source alive; closes itself.
class Recording {
 public:
  // [control] NULL if the plugin lacks this side. Error(data) with the plugin's sentence if the recording does not suit
  // the source or cannot be read.
  static std::unique_ptr<Recording> open(const Library& library, std::shared_ptr<const Source> source,
                                         const std::filesystem::path& path);
  Recording(const Recording&) = delete;
  ~Recording();

  uint64_t steps() const { return steps_; }  // at least 1
  // The source's fields, with this recording's shapes.
  const std::vector<Field>& fields() const { return fields_; }
  // [worker] Fills `fields` as Reader::read() does, with samples that begin at these steps (< steps()). Error(data).
  void read(std::span<const uint64_t> steps, std::span<const DLTensor> fields);

 private:
  Recording(const hr_predict& api, std::shared_ptr<const Source> source) : api_(&api), source_(std::move(source)) {}
  const hr_predict* api_;
  std::shared_ptr<const Source> source_;
  hr_recording* handle_ = nullptr;
  uint64_t steps_ = 0;
  std::vector<Field> fields_;
};

}  // namespace headroom
