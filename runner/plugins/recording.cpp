#include "plugins/recording.hpp"

#include <algorithm>

#include "plugins/call.hpp"

namespace headroom {

namespace {

std::vector<Field> fields_of(const hr_predict& api, const hr_recording* recording, const Source& source) {
  std::vector<Field> fields = source.fields();
  if (api.shape == nullptr) return fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    // It writes as many extents as the field has axes: predict.h.
    call(source.id(), "shape", api.shape, recording, static_cast<uint32_t>(i), fields[i].shape.data());
    const auto in_range = [](int64_t extent) { return extent >= 1 && extent <= INT32_MAX; };
    if (!is_missing(fields[i]) && !std::ranges::all_of(fields[i].shape, in_range))
      throw Error(Exit::plugin, source.id(), "a recording's field '" + fields[i].name + "' has no sound shape");
  }
  return fields;
}

}  // namespace

bool is_missing(const Field& field) {
  return !field.shape.empty() && std::ranges::count(field.shape, 0) == static_cast<int64_t>(field.shape.size());
}

std::unique_ptr<Recording> Recording::open(const Library& library, std::shared_ptr<const Source> source,
                                           const std::filesystem::path& path) {
  const hr_predict* api = library.predict();
  if (api == nullptr || api->open == nullptr) return nullptr;
  // Before the plugin opens anything: the destructor closes it if a check below throws.
  std::unique_ptr<Recording> recording(new Recording(*api, std::move(source)));
  const std::string& id = recording->source_->id_;
  hr_error error = no_error();
  check(call(id, "open", api->open, recording->source_->handle_, path.c_str(), &recording->handle_, &recording->steps_,
             &error),
        error, id, "opening a recording");
  if (recording->handle_ == nullptr || recording->steps_ == 0)
    throw Error(Exit::plugin, id, "opening a recording gave neither a recording with steps nor an error");
  recording->fields_ = fields_of(*api, recording->handle_, *recording->source_);
  return recording;
}

Recording::~Recording() {
  if (handle_ != nullptr) call_quietly(source_->id_, "close", api_->close, handle_);
}

void Recording::read(std::span<const uint64_t> steps, std::span<const DLTensor> fields) {
  if (fields.size() != source_->fields_.size()) throw Error(Exit::bug, source_->id_, "a read needs one slot a field");
  // The contract of hr_predict.read: keys, flags and split are 0.
  const std::vector<uint64_t> keys(steps.size(), 0);
  const hr_read request{sizeof(hr_read), 0u,           /*split=*/0, static_cast<uint32_t>(fields.size()),
                        steps.size(),    steps.data(), keys.data(), fields.data()};
  hr_error error = no_error();
  const hr_status status = [&] {
    const SharedLock reading(source_->reads_);
    return call(source_->id_, "read", api_->read, handle_, &request, &error);
  }();
  check(status, error, source_->id_, "reading a recording");
}

}  // namespace headroom
