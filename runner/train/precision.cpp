#include "train/precision.hpp"

#include "headroom/sdk/autocast.hpp"

namespace headroom {

namespace {

bool computes_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return sdk::onednn_works_in(at::kBFloat16);
#endif
}

}  // namespace

at::ScalarType parameter_dtype(const std::string& precision) { return precision == "fp64" ? at::kDouble : at::kFloat; }

std::optional<at::ScalarType> autocast_dtype(const std::string& precision) {
  if (precision == "bf16") return at::kBFloat16;
  if (precision == "fp16") return at::kHalf;
  return std::nullopt;
}

bool scales_loss(const std::string& precision) { return autocast_dtype(precision) == at::kHalf; }

std::string slow_precision(const std::string& precision, at::Device device) {
  if (!device.is_cpu()) return "";
  if (precision == "fp16") {
    return "train.precision = \"fp16\" is for GPUs: on a CPU LibTorch is many times slower in it than in \"fp32\"";
  }
  if (precision != "bf16" || computes_bf16()) return "";
  return "train.precision = \"bf16\": this processor has no instructions for it, and LibTorch may be several times "
         "slower in it than in \"fp32\"";
}

}  // namespace headroom
