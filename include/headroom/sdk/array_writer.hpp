// HDF5 files, written by the host (headroom.array_writer/1).
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "headroom/sdk/arrays.hpp"

namespace headroom::sdk {

struct ArraySpec {
  std::string dataset;                    // "/group/name"; missing groups are created
  std::vector<uint64_t> shape;            // shape[0]: the final length, or 0 for unknown (chunked)
  std::vector<uint64_t> chunk = {};       // {}: contiguous
  DLDataType dtype = f32;                 // of a plain element
  std::vector<ArrayMember> members = {};  // of a compound; offsets into the record that append is given
  uint64_t record_bytes = 0;              // of a compound
  int deflate = 0;                        // 0-9; 0: none
};

// Writes one HDF5 file under a temporary name; commit() renames it into place. Without commit() no file is left. For
// one thread.
class ArrayWriter {
 public:
  ArrayWriter(const Host& host, const std::filesystem::path& file)
      : api_(&host.service<hr_array_writer>(HR_ARRAY_WRITER)) {
    hr_error error = no_error();
    require(api_->create(host.native(), file.c_str(), &handle_, &error), error);
  }
  ArrayWriter(ArrayWriter&& other) noexcept : api_(other.api_), handle_(std::exchange(other.handle_, nullptr)) {}
  ArrayWriter& operator=(ArrayWriter&&) = delete;
  ~ArrayWriter() {
    hr_error error = no_error();
    if (handle_ != nullptr) api_->close(handle_, 0, &error);
  }

  // Declares a dataset; the number is for append().
  uint32_t dataset(const ArraySpec& spec) {
    const auto refuse = [&](const std::string& why) {
      throw Error(HR_INTERNAL, "dataset '" + spec.dataset + "' " + why);
    };
    if (spec.shape.size() > HR_MAX_DIMS) refuse("has more than 8 axes");
    if (!spec.chunk.empty() && spec.chunk.size() != spec.shape.size())
      refuse("has chunks with other axes than itself; give an extent for each axis");
    std::vector<hr_array_member> members;
    for (const ArrayMember& member : spec.members) {
      if (member.shape.size() > HR_MAX_DIMS) refuse("has a member '" + member.name + "' of more than 8 axes");
      hr_array_member native{};
      native.struct_size = sizeof native;
      native.ndim = static_cast<int32_t>(member.shape.size());
      std::copy(member.shape.begin(), member.shape.end(), native.shape);
      native.name = member.name.c_str();
      native.dtype = member.dtype;
      native.offset = member.offset;
      members.push_back(native);
    }
    hr_array_spec native{};
    native.struct_size = sizeof native;
    native.ndim = static_cast<int32_t>(spec.shape.size());
    native.dataset = spec.dataset.c_str();
    std::copy(spec.shape.begin(), spec.shape.end(), native.shape);
    std::copy(spec.chunk.begin(), spec.chunk.end(), native.chunk);
    native.dtype = spec.dtype;
    native.member_count = static_cast<uint32_t>(members.size());
    native.deflate = spec.deflate;
    native.members = members.data();
    native.record_bytes = spec.record_bytes;
    uint32_t id = 0;
    hr_error error = no_error();
    require(api_->dataset(handle_, &native, &id, &error), error);
    return id;
  }

  // Appends `rows` rows along axis 0, row-major.
  void append(uint32_t id, const void* data, uint64_t rows) {
    hr_error error = no_error();
    require(api_->append(handle_, id, data, rows, &error), error);
  }

  // Sets an attribute of a group or dataset ("/" is the file's root). Error(HR_INVALID_ARGUMENT) for a string of more
  // than 511 bytes.
  void attribute(const std::string& object, const std::string& name, const Attribute& value) {
    hr_attribute native{};
    if (value.string.size() >= sizeof native.string) {
      invalid("attribute '" + name + "' of '" + object + "' would be a string of " +
              std::to_string(value.string.size()) + " bytes; at most " + std::to_string(sizeof native.string - 1) +
              " can be written");
    }
    native.struct_size = sizeof native;
    native.type = value.type;
    native.i64 = value.i64;
    native.f64 = value.f64;
    value.string.copy(native.string, sizeof native.string - 1);
    hr_error error = no_error();
    require(api_->attribute(handle_, object.c_str(), name.c_str(), &native, &error), error);
  }

  // Renames the file to its final name. The writer cannot be used afterwards, also when this throws.
  void commit() {
    hr_error error = no_error();
    require(api_->close(std::exchange(handle_, nullptr), 1, &error), error);
  }

 private:
  const hr_array_writer* api_;
  hr_writer* handle_ = nullptr;
};

}  // namespace headroom::sdk
