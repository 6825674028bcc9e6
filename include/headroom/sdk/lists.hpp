// HDF5 datasets of lists of numbers, each of its own length, read by the host (headroom.lists/1).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "headroom/lists.h"
#include "headroom/sdk/arrays.hpp"
#include "headroom/sdk/host.hpp"

namespace headroom::sdk {

// Move-only; many threads may read one. [any]
class Lists {
 public:
  // Takes an array whose elements are lists. Throws Error (HR_INVALID_ARGUMENT) for any other.
  Lists(const Host& host, Array array) : api_(&host.service<hr_lists>(HR_LISTS)), array_(std::move(array)) {
    hr_error error = no_error();
    require(api_->dtype(array_.native(), &dtype_, &error), error);
  }

  const ArrayInfo& info() const { return array_.info(); }
  DLDataType dtype() const { return dtype_; }  // of one value

  // Writes the first values of the list at `at`, at most `most`, to `data` as `dtype`; returns how many the list has.
  uint64_t read(std::span<const uint64_t> at, DLDataType dtype, void* data, uint64_t most) const {
    if (at.size() != info().shape.size()) throw Error(HR_INTERNAL, "a list is read with an index for each axis");
    hr_error error = no_error();
    uint64_t length = 0;
    require(api_->read(array_.native(), at.data(), dtype, data, most, &length, &error), error);
    return length;
  }

 private:
  const hr_lists* api_;
  Array array_;
  DLDataType dtype_{};
};

// How long the first lists of a dataset are.
inline hr_list_lengths list_lengths(const Host& host, const std::filesystem::path& file, const std::string& dataset) {
  hr_error error = no_error();
  hr_list_lengths lengths{};
  lengths.struct_size = sizeof lengths;
  const hr_lists& api = host.service<hr_lists>(HR_LISTS);
  require(api.lengths(host.native(), file.c_str(), dataset.c_str(), &lengths, &error), error);
  return lengths;
}

}  // namespace headroom::sdk
