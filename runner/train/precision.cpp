#include "train/precision.hpp"

#include <algorithm>
#include <cmath>

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

constexpr double first_factor = 0x1p16, smallest_factor = 0x1p-24;  // of a loss that is a mean, as GradScaler's
// GradScaler's growth_interval.
constexpr int64_t windows_until_doubled = 2000;

}  // namespace

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

LossScale::LossScale(bool scales) : scales_(scales) {
  if (scales) state_.factor = first_factor;
}

bool LossScale::lower(double weight) {
  if (!scales_) return false;
  if (attempts_++ == 0) before_ = state_;
  // The loss is a sum: what GradScaler would begin with is found by the first window that overflows.
  const double as_of_mean = std::exp2(std::floor(std::log2(first_factor / std::max(weight, 1.0))));
  // Divided by 2, 4, 16, 256, ...: few attempts reach a factor that is far off.
  const double less = std::ldexp(state_.factor, -(1 << std::min(attempts_ - 1, 5)));
  state_ = {attempts_ == 1 && state_.factor == first_factor ? std::min(less, as_of_mean) : less, 0};
  if (state_.factor >= smallest_factor) return true;
  state_ = before_;
  attempts_ = 0;
  return false;
}

void LossScale::succeeded() {
  attempts_ = 0;
  if (!scales_ || ++state_.windows < windows_until_doubled) return;
  state_ = {state_.factor * 2, 0};
}

}  // namespace headroom
