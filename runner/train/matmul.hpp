// Which library multiplies float32 matrices on a CPU. LibTorch takes MKL, which knows some processors only as generic
// ones and then computes at half of their speed. It takes oneDNN instead where less than float32 is allowed; on a
// processor without bf16 matrix units (AMX) oneDNN computes in float32 nevertheless. Nobody tells which it is, so it is
// measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace headroom {

// oneDNN beside MKL, on products of the sizes that layers have.
struct MatmulProbe {
  double speedup = 1.0;                       // geometric mean of MKL's seconds by oneDNN's, in one thread
  double ieee_error = 0.0, fast_error = 0.0;  // largest, of the largest value, against float64
  bool same = true;                           // bit by bit: here LibTorch takes oneDNN for nothing

  bool only_rounds() const;  // oneDNN's products differ from MKL's by no more than float32 rounds
  bool pays() const;         // and they are clearly faster
};

// Some 20 ms in the calling thread. Leaves LibTorch's settings as they were, its number of threads too. [control]
MatmulProbe probe_matmul();

// Kept in `folder`, one file per processor and LibTorch; empty: nowhere. Where memory is too small to measure, a probe
// that chooses MKL, which is not kept. [control]
MatmulProbe kept_matmul_probe(const std::filesystem::path& folder);

// Whether most weights are in matrices so large that a product pays oneDNN for its call: `elements` of each. By the
// weights, because they are known before a run begins and never change: runs of one file choose alike.
bool are_large(std::span<const int64_t> elements);

struct MatmulChoice {
  bool fast = false;  // oneDNN on a CPU, TF32 on a GPU; otherwise as IEEE 754 has float32
  bool cuda = false;
  bool changes_mathematics = false;  // by more than float32 rounds
  std::string line = {};             // for the log; empty: there is nothing to say

  std::string name() const { return fast ? "fast" : "ieee"; }
};

// `wanted`: experiment.matmul, of a model whose matrices are large where it is "auto". On a CPU `probe` decides what
// that is; on a GPU it is ieee.
MatmulChoice choose_matmul(const std::string& wanted, bool cuda, const MatmulProbe& probe);

// From here on, in the whole process. [control]
void apply_matmul(const MatmulChoice& choice);

}  // namespace headroom
