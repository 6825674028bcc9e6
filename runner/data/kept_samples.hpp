// Whole samples of one loader in the sample cache, as batches hold them: all fields, standardised, one block a sample.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/sample_cache.hpp"
#include "plugins/source.hpp"

namespace headroom {

// All members from any thread. Only for reads that do not depend on the sample's key.
class KeptSamples {
 public:
  KeptSamples(SampleCache& cache, std::span<const Field> fields, CachePolicy policy);
  ~KeptSamples();  // drops them
  KeptSamples(const KeptSamples&) = delete;
  KeptSamples& operator=(const KeptSamples&) = delete;

  // `at`: one sample's place in a slot. Copies: a batch is one piece of memory. False when it is not there.
  bool load(uint64_t index, std::span<const DLTensor> at) const;
  // Keeps it where there is room.
  void store(uint64_t index, std::span<const DLTensor> at) const;

 private:
  std::string key(uint64_t index) const;

  SampleCache& cache_;
  CachePolicy policy_;
  std::vector<size_t> field_bytes_;
  uint64_t bytes_ = 0;
  std::string prefix_;
};

}  // namespace headroom
