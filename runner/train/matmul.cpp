#include "train/matmul.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <torch/version.h>

#include "config/digest.hpp"
#include "config/user_cache.hpp"
#include "record/run_folder.hpp"
#include "train/compute.hpp"

namespace headroom {

namespace {

// Rows of a batch through a linear layer.
struct Layer {
  int64_t rows, inputs, outputs;
};

// As models have them for which it is asked (are_large()), a feed-forward layer, and many rows through a narrow one;
// and no larger, because a run's memory may be small.
constexpr std::array<Layer, 2> layers{{{96, 512, 1024}, {1024, 96, 288}}};
constexpr int64_t large_elements = 1 << 17;  // 256 x 512: with 16 samples some 40 us of MKL, and 10 us are a call
constexpr int turns = 8;
constexpr double clearly_faster = 1.04;  // whole steps then gained a tenth and more
// bf16 is off by some thousand times as much as float32.
constexpr double as_much_as_rounding = 16.0;

void allow_fast(bool fast, at::Float32Backend backend) {
  const bool cuda = backend == at::Float32Backend::CUDA;
  const auto less = cuda ? at::Float32Precision::TF32 : at::Float32Precision::BF16;
  at::globalContext().setFloat32Precision(backend, at::Float32Op::MATMUL, fast ? less : at::Float32Precision::IEEE);
}

// As they were at the end of a probe, whatever it threw.
class Restored {
 public:
  ~Restored() {
    at::globalContext().setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL, before_);
    at::set_num_threads(threads_);
  }

 private:
  at::Float32Precision before_ =
      at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  int threads_ = at::get_num_threads();
};

double seconds_of(const at::Tensor& a, const at::Tensor& b, at::Tensor& result) {
  const auto started = std::chrono::steady_clock::now();
  at::mm_out(result, a, b);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

// Numbers between -1 and 1 without LibTorch's generator, which weights are drawn from.
at::Tensor made_up(int64_t rows, int64_t columns) {
  at::Tensor tensor = at::empty({rows, columns}, at::kFloat);
  auto* const values = tensor.mutable_data_ptr<float>();
  uint32_t state = 12345;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    state = state * 1664525 + 1013904223;  // Numerical Recipes' ranqd1
    values[i] = static_cast<float>(state >> 8) * 0x1p-23F - 1.0F;
  }
  return tensor;
}

// MKL's seconds by oneDNN's, and both errors into `probe`.
double compare(const at::Tensor& a, const at::Tensor& b, MatmulProbe& probe) {
  at::Tensor result = at::empty({a.size(0), b.size(1)}, at::kFloat);
  const at::Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  const double largest = exact.abs().max().item<double>();
  at::Tensor first;
  double ieee_seconds = INFINITY, fast_seconds = INFINITY;
  // In turns: what else the machine does meets both. The first turn prepares their code.
  for (int turn = 0; turn <= turns; ++turn) {
    for (const bool fast : {false, true}) {
      allow_fast(fast, at::Float32Backend::MKLDNN);
      const double seconds = seconds_of(a, b, result);
      if (turn == 0) {
        double& error = fast ? probe.fast_error : probe.ieee_error;
        error = std::max(error, result.to(at::kDouble).sub_(exact).abs_().max().item<double>() / largest);
        if (fast) probe.same = probe.same && result.equal(first);
        if (!fast) first = result.clone();
      } else {
        double& least = fast ? fast_seconds : ieee_seconds;
        least = std::min(least, seconds);
      }
    }
  }
  return ieee_seconds / fast_seconds;
}

// Of the three products of a training step, the logarithms of what compare() gives, added up.
double compare_step(const Layer& layer, MatmulProbe& probe) {
  const at::Tensor input = made_up(layer.rows, layer.inputs), weight = made_up(layer.outputs, layer.inputs),
                   gradient = made_up(layer.rows, layer.outputs);
  return std::log(compare(input, weight.t(), probe)) + std::log(compare(gradient, weight, probe)) +
         std::log(compare(gradient.t(), input, probe));
}

std::string key() { return Digest().add("matmul of layers").add(processor_text()).add(TORCH_VERSION).hex(); }

}  // namespace

bool MatmulProbe::only_rounds() const { return fast_error <= as_much_as_rounding * ieee_error; }
bool MatmulProbe::pays() const { return !same && only_rounds() && speedup >= clearly_faster; }

bool are_large(bool many_rows, std::span<const int64_t> elements) {
  if (many_rows) return true;
  int64_t large = 0, all = 0;
  for (const int64_t count : elements) {
    all += count;
    if (count >= large_elements) large += count;
  }
  return 2 * large > all;
}

MatmulProbe probe_matmul() {
  const Restored restored;
  // More threads than processors that are free would be measured together with what else runs.
  at::set_num_threads(1);
  MatmulProbe probe;
  double logarithms = 0.0;
  for (const Layer& layer : layers) logarithms += compare_step(layer, probe);
  probe.speedup = std::exp(logarithms / (3 * layers.size()));
  return probe;
}

MatmulProbe kept_matmul_probe(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder.empty() ? folder : folder / (key() + ".json");
  try {
    if (const nlohmann::json kept = read_json_file(file); kept.is_object())
      return {kept.at("speedup"), kept.at("ieee_error"), kept.at("fast_error"), kept.at("same")};
  } catch (const nlohmann::json::exception&) {  // damaged: measured again
  }
  const MatmulProbe probe = probe_matmul();
  if (!file.empty()) {
    const nlohmann::json json = {{"processor", processor_text()},  {"libtorch", TORCH_VERSION},
                                 {"speedup", probe.speedup},       {"ieee_error", probe.ieee_error},
                                 {"fast_error", probe.fast_error}, {"same", probe.same}};
    keep_in_cache(file, json_text(json));
  }
  return probe;
}

MatmulChoice choose_matmul(const std::string& wanted, bool cuda, const MatmulProbe& probe) {
  if (cuda) {
    const bool fast = wanted == "fast";
    return {fast, true, fast,
            fast ? "experiment.matmul = \"fast\": products of float32 matrices are computed in TF32" : ""};
  }
  if (wanted == "fast" && probe.same)
    return {.line =
                "experiment.matmul = \"fast\" changes nothing: LibTorch has one way to multiply float32 matrices here"};
  if (wanted != "fast" && (wanted != "auto" || !probe.pays())) return {};
  std::array<char, 200> line{};
  if (probe.only_rounds()) {
    std::snprintf(
        line.data(), line.size(),
        "products of float32 matrices: oneDNN, measured %.2f times as fast as MKL on this processor, rounding "
        "as float32 does (experiment.matmul)",
        probe.speedup);
  } else {
    std::snprintf(line.data(), line.size(),
                  "experiment.matmul = \"fast\": products of float32 matrices are less exact than float32, with errors "
                  "%.0f times as large",
                  probe.fast_error / std::max(probe.ieee_error, 1e-12));
  }
  return {true, false, !probe.only_rounds(), line.data()};
}

void apply_matmul(const MatmulChoice& choice) {
  allow_fast(choice.fast, choice.cuda ? at::Float32Backend::CUDA : at::Float32Backend::MKLDNN);
}

}  // namespace headroom
