// A loader of libheadroom_loader for tests, and what its batches say.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "loader_library/loader_library.h"

namespace headroom {

// 150 training and 50 validation samples of 3 standardised numbers and 1 other; 22 batches of 7, the last of 3.
using Keys = std::vector<std::pair<std::string, std::string>>;
inline Keys toy_keys(const Keys& more = {}) {
  Keys keys = {{"data.source", HEADROOM_BUILD_DIR "/examples/toy_source.so"},
               {"data.options", "{ samples = 200 }"},
               {"data.split", "{ train = 0.75, val = 0.25, test = 0.0, seed = 1 }"},
               {"data.normalize", "exact"},
               {"experiment.seed", "11"},
               {"train.batch_size", "7"}};
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

class LoaderTrial {
 public:
  explicit LoaderTrial(const Keys& keys, const std::string& split = "train", const std::string& experiment = "") {
    std::vector<hr_loader_key> native;
    for (const auto& [key, value] : keys) native.push_back({key.c_str(), value.c_str()});
    hr_loader_request request{};
    request.struct_size = sizeof request;
    request.training = -1;
    request.experiment = experiment.empty() ? nullptr : experiment.c_str();
    request.keys = native.data();
    request.key_count = native.size();
    request.split = split.c_str();
    status = hr_loader_open(&request, &loader_, &error);
    EXPECT_EQ(loader_ == nullptr, status != HR_OK);
  }
  ~LoaderTrial() { close(); }
  LoaderTrial(const LoaderTrial&) = delete;
  LoaderTrial& operator=(const LoaderTrial&) = delete;

  void close() { hr_loader_close(std::exchange(loader_, nullptr)); }
  hr_loader* get() const { return loader_; }
  nlohmann::json about() const { return nlohmann::json::parse(hr_loader_description(loader_)); }
  hr_status seek(uint64_t epoch, uint64_t position) { return hr_loader_seek(loader_, epoch, position, &error); }
  hr_loader_place place() const {
    hr_loader_place where{};
    where.struct_size = sizeof where;
    EXPECT_EQ(hr_loader_where(loader_, &where, nullptr), HR_OK);
    return where;
  }

  struct Release {
    void operator()(hr_loader_batch* batch) const { hr_loader_release(batch); }
  };
  using Held = std::unique_ptr<hr_loader_batch, Release>;

  // NULL at the epoch's end, and where there was an error.
  Held next(uint32_t wait_ms = 1000) {
    int32_t outcome = HR_LOADER_WAITING;
    hr_loader_batch* batch = nullptr;
    while (outcome == HR_LOADER_WAITING) {
      if ((status = hr_loader_next(loader_, wait_ms, &outcome, &batch, &error)) != HR_OK) break;
    }
    return Held(batch);
  }

  hr_status status = HR_OK;
  hr_error error{};

 private:
  hr_loader* loader_ = nullptr;
};

struct DropTensor {
  void operator()(DLManagedTensorVersioned* tensor) const { hr_loader_drop_tensor(tensor); }
};
using Tensor = std::unique_ptr<DLManagedTensorVersioned, DropTensor>;

inline Tensor tensor_of(const LoaderTrial::Held& batch, uint32_t field) {
  DLManagedTensorVersioned* tensor = nullptr;
  EXPECT_EQ(hr_loader_tensor(batch.get(), field, &tensor, nullptr), HR_OK);
  return Tensor(tensor);
}

inline std::string bytes_of(const DLTensor& tensor) {
  uint64_t size = tensor.dtype.bits / 8;
  for (int axis = 0; axis < tensor.ndim; ++axis) size *= static_cast<uint64_t>(tensor.shape[axis]);
  return {static_cast<const char*>(tensor.data), size};
}

// Place, source indices and values.
inline std::string content(const LoaderTrial::Held& batch) {
  const hr_loader_batch_info info = hr_loader_batch_look(batch.get());
  std::string text = std::to_string(info.epoch) + "," + std::to_string(info.first) + ",";
  for (uint64_t i = 0; i < info.count; ++i) text += std::to_string(info.index[i]) + " ";
  for (uint32_t field = 0; field < info.fields; ++field) text += bytes_of(tensor_of(batch, field)->dl_tensor);
  return text;
}

// What is left of an epoch.
inline std::vector<std::string> epoch_of(LoaderTrial& loader, uint32_t wait_ms = 1000) {
  std::vector<std::string> all;
  while (const LoaderTrial::Held batch = loader.next(wait_ms)) all.push_back(content(batch));
  EXPECT_EQ(loader.status, HR_OK) << loader.error.message;
  return all;
}

}  // namespace headroom
