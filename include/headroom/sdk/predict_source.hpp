// The source's side of headroom.predict/1 (predict.hpp). Needs no LibTorch.
//
//   class Source {
//     // A further recording, read with the source's options, fields and statistics. Any movable type with
//     //   uint64_t steps() const;                   at least 1
//     //   void read(const ReadRequest& request);    sample i begins at step request.index(i); nothing is drawn
//     //   std::vector<int64_t> shape(uint32_t field) const;   where not that of the source's field; may be left out
//     // Throws sdk::Error(HR_DATA_CORRUPT) when it does not suit the source.
//     Recording open_recording(const std::filesystem::path& path) const;
//   };
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "headroom/datasource.hpp"
#include "headroom/sdk/predict.hpp"

namespace headroom::sdk {

template <class T>
class SourceSide {
 public:
  static void fill(hr_predict& table) {
    table.open = open;
    table.close = close;
    table.read = read;
    if constexpr (requires(const Recording& recording) { recording.shape(0u); }) table.shape = shape;
  }

 private:
  using Recording = decltype(std::declval<const T&>().open_recording(std::filesystem::path()));

  static hr_status open(hr_source* source, const char* path, hr_recording** out, uint64_t* steps,
                        hr_error* error) noexcept {
    return guard(error, [&] {
      auto recording = std::make_unique<Recording>(detail::SourceBox<T>::from(source)->source.open_recording(path));
      *steps = recording->steps();
      *out = reinterpret_cast<hr_recording*>(recording.release());
    });
  }
  static void shape(const hr_recording* recording, uint32_t field, int64_t* out) noexcept {
    const std::vector<int64_t> extents = reinterpret_cast<const Recording*>(recording)->shape(field);
    std::copy(extents.begin(), extents.end(), out);
  }
  static void close(hr_recording* recording) noexcept { delete reinterpret_cast<Recording*>(recording); }
  static hr_status read(hr_recording* recording, const hr_read* request, hr_error* error) noexcept {
    return guard(error, [&] { reinterpret_cast<Recording*>(recording)->read(ReadRequest(request)); });
  }
};

}  // namespace headroom::sdk
