// Which library multiplies float32 matrices on a CPU. LibTorch uses MKL, which treats some processors as generic ones
// and then runs at half of their speed. LibTorch uses oneDNN where less than float32 precision is allowed. On a
// processor without bf16 matrix units (AMX), oneDNN still computes in float32. Neither library says which case applies,
// so it is measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace headroom {

// oneDNN compared with MKL, on the products of a training step through layers as in are_large().
struct MatmulProbe {
  double speedup = 1.0;                       // geometric mean of MKL's time over oneDNN's, in one thread
  double ieee_error = 0.0, fast_error = 0.0;  // largest error against float64, relative to the largest value
  bool same = true;                           // bit-equal results: LibTorch does not use oneDNN here

  bool only_rounds() const;  // oneDNN's products differ from MKL's by float32 rounding at most
  bool pays() const;         // only_rounds(), and oneDNN is there and faster
};

// Measures; takes some 150 ms in the calling thread. Restores LibTorch's settings, its number of threads included.
// [control]
MatmulProbe probe_matmul();

// The same, kept in `folder` for later calls: one file for each processor and version of LibTorch. With an empty
// `folder` nothing is kept. std::bad_alloc, c10::Error: no memory. [control]
MatmulProbe kept_matmul_probe(const std::filesystem::path& folder);

// Whether most products are so large that oneDNN's cost for each call pays off: because the model has small matrices
// that meet `many_rows` (HR_MODEL_MANY_ROWS), or because most weights are in large matrices; `elements` is the size of
// each. Both are known before a run begins and never change, so all runs of one file choose the same.
bool are_large(bool many_rows, std::span<const int64_t> elements);

struct MatmulChoice {
  bool fast = false;  // oneDNN on a CPU, TF32 on a GPU; false: IEEE 754 float32
  bool cuda = false;
  bool changes_mathematics = false;  // by more than float32 rounding
  std::string line = {};             // for the log; empty: there is nothing to say

  std::string name() const { return fast ? "fast" : "ieee"; }
};

// `wanted` is experiment.matmul; for "auto", the model's matrices must be large (are_large()). On a CPU `probe` decides
// what "auto" means; on a GPU it means ieee.
MatmulChoice choose_matmul(const std::string& wanted, bool cuda, const MatmulProbe& probe);

// Sets the choice for the whole process. [control]
void apply_matmul(const MatmulChoice& choice);

}  // namespace headroom
