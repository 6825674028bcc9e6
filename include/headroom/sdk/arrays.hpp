// HDF5 datasets, read by the host (headroom.arrays/1).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headroom/sdk/fields.hpp"
#include "headroom/sdk/host.hpp"

namespace headroom::sdk {

struct ArrayMember {
  std::string name;
  DLDataType dtype{};                // bits 0: a type the host does not convert
  std::vector<uint64_t> shape = {};  // of an array member; {}: scalar
  uint64_t offset = 0;               // bytes into the record

  uint64_t elements() const {
    uint64_t count = 1;
    for (const uint64_t extent : shape) count *= extent;
    return count;
  }
};

struct ArrayInfo {
  std::vector<uint64_t> shape, chunk;  // chunk: {} when contiguous
  DLDataType dtype{};                  // bits 0: a compound
  std::vector<ArrayMember> members;    // of a compound
  bool filtered = false;               // compressed or otherwise filtered
  uint64_t element_bytes = 0;          // of one element or whole record in the file
};

// Where a member's values go, converted to T: element e of the box lands at data + e * stride_bytes.
template <class T>
hr_array_target target(T* data, uint32_t member = HR_WHOLE, uint64_t stride_bytes = 0) {
  return {member, dtype_of<T>(), data, stride_bytes};
}

// One HDF5 dataset, read by the host. Move-only; many threads may read one Array.
class Array {
 public:
  Array(const Host& host, const std::filesystem::path& file, const std::string& dataset)
      : api_(&host.service<hr_arrays>(HR_ARRAYS)), name_(file.string() + ":" + dataset) {
    hr_error error = no_error();
    require(api_->open(host.native(), file.c_str(), dataset.c_str(), &handle_, &error), error);
    try {
      describe();
    } catch (...) {
      api_->close(handle_);
      throw;
    }
  }
  Array(Array&& other) noexcept
      : api_(other.api_),
        name_(std::move(other.name_)),
        info_(std::move(other.info_)),
        handle_(std::exchange(other.handle_, nullptr)) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(name_, other.name_);
    std::swap(info_, other.info_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Array() {
    if (handle_ != nullptr) api_->close(handle_);
  }

  const ArrayInfo& info() const { return info_; }
  hr_array* native() const { return handle_; }

  // The index of a compound's member; HR_DATA_CORRUPT, naming what is there, when it has none of that name.
  uint32_t member(std::string_view name) const {
    if (const auto i = find_member(name)) return *i;
    std::vector<std::string> names;
    for (const ArrayMember& member : info_.members) names.push_back(member.name);
    throw Error(HR_DATA_CORRUPT, name_ + " has no member '" + std::string(name) + "'; it has " + listing(names));
  }
  std::optional<uint32_t> find_member(std::string_view name) const {
    for (uint32_t i = 0; i < info_.members.size(); ++i) {
      if (info_.members[i].name == name) return i;
    }
    return std::nullopt;
  }

  // Reads the box [start, start + count) into every target.
  void read_box(std::span<const uint64_t> start, std::span<const uint64_t> count,
                std::span<const hr_array_target> targets) const {
    require_axes(start, count);
    hr_error error = no_error();
    require(api_->read_box(handle_, start.data(), count.data(), targets.data(), static_cast<uint32_t>(targets.size()),
                           &error),
            error);
  }
  // The same, and true if every value written to a float32 or float64 target is finite. Otherwise first_not_finite()
  // (sdk/finite.hpp) finds the one that is not.
  bool read_box_check_finite(std::span<const uint64_t> start, std::span<const uint64_t> count,
                             std::span<const hr_array_target> targets) const {
    require_axes(start, count);
    hr_error error = no_error();
    int32_t finite = 0;
    require(api_->read_box_check_finite(handle_, start.data(), count.data(), targets.data(),
                                        static_cast<uint32_t>(targets.size()), &finite, &error),
            error);
    return finite != 0;
  }
  // Rows [first, first + count) of axis 0, all of the other axes.
  void read_rows(uint64_t first, uint64_t count, std::span<const hr_array_target> targets) const {
    const Box rows = box_of_rows(first, count);
    read_box(rows.start, rows.count, targets);
  }
  bool read_rows_check_finite(uint64_t first, uint64_t count, std::span<const hr_array_target> targets) const {
    const Box rows = box_of_rows(first, count);
    return read_box_check_finite(rows.start, rows.count, targets);
  }

 private:
  struct Box {
    std::vector<uint64_t> start, count;
  };
  Box box_of_rows(uint64_t first, uint64_t count) const {
    Box box{std::vector<uint64_t>(info_.shape.size(), 0), info_.shape};
    if (!box.start.empty()) {
      box.start[0] = first;
      box.count[0] = count;
    }
    return box;
  }

  void require_axes(std::span<const uint64_t> start, std::span<const uint64_t> count) const {
    if (start.size() == info_.shape.size() && count.size() == info_.shape.size()) return;
    throw Error(HR_INTERNAL, name_ + " has " + std::to_string(info_.shape.size()) +
                                 " axes; the plugin reads a box of " + std::to_string(start.size()));
  }

  void describe() {
    hr_error error = no_error();
    hr_array_info info{};
    info.struct_size = sizeof info;
    require(api_->info(handle_, &info, &error), error);
    info_.shape.assign(info.shape, info.shape + info.ndim);
    bool chunked = false;
    for (int32_t axis = 0; axis < info.ndim; ++axis) chunked = chunked || info.chunk[axis] != 0;
    if (chunked) info_.chunk.assign(info.chunk, info.chunk + info.ndim);
    info_.dtype = info.dtype;
    info_.filtered = info.filtered != 0;
    info_.element_bytes = info.element_bytes;
    for (uint32_t i = 0; i < info.member_count; ++i) {
      hr_array_member member{};
      member.struct_size = sizeof member;
      require(api_->member(handle_, i, &member, &error), error);
      info_.members.push_back({member.name, member.dtype, {member.shape, member.shape + member.ndim}, member.offset});
    }
  }

  const hr_arrays* api_;
  std::string name_;
  ArrayInfo info_;
  hr_array* handle_ = nullptr;
};

}  // namespace headroom::sdk
