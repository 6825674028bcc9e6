// What the loader's tests try it on: a small split of a fake source, and what its batches say.
#pragma once

#include <string>
#include <vector>

#include "data/loader.hpp"
#include "fake_source.hpp"

namespace headroom {

inline LoaderOptions options(int workers, int64_t batch = 7) {
  LoaderOptions all;
  all.seed = 11;
  all.batch_size = batch;
  all.shuffle = Shuffle::global;
  all.augment = true;
  all.num_workers = workers;
  return all;
}

inline Split train(const Source& source) {
  return {"train", 0, {source.groups(0)[0], source.groups(0)[2], source.groups(0)[3]}};
}  // 80 samples

// Everything a batch says, as bytes.
inline std::string content(const Batch& batch) {
  std::string bytes = std::to_string(batch.epoch) + "," + std::to_string(batch.first) + ",";
  for (size_t i = 0; i < batch.index.size(); ++i)
    bytes += std::to_string(batch.index[i]) + ":" + std::to_string(batch.key[i]) + " ";
  for (const DLTensor& field : batch.fields) {
    uint64_t size = field.dtype.bits / 8;
    for (int axis = 0; axis < field.ndim; ++axis) size *= static_cast<uint64_t>(field.shape[axis]);
    bytes.append(static_cast<const char*>(field.data), size);
  }
  return bytes;
}

inline std::vector<std::string> epoch_of(Loader& loader) {
  std::vector<std::string> all;
  while (const auto batch = loader.next()) all.push_back(content(*batch));
  return all;
}

}  // namespace headroom
