#include "row_kernels.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {
namespace {

// Sums in float32 of so many rows go into one in float64.
constexpr int64_t rows_at_once = 16;

struct Interpolate {
  static HEADROOM_KERNEL_BODY void run(const Interpolation* shape, const float* from, float* to) {
    for (const Between& position : *shape->positions) {
      const float* const first = from + position.row * shape->from_stride;
      const float* const second = position.row + 1 < shape->from ? first + shape->from_stride : first;
      const float weight = position.weight, rest = 1.0F - weight;
#pragma GCC ivdep
      for (int64_t i = 0; i < shape->width; ++i) to[i] = rest * first[i] + weight * second[i];
      to += shape->to_stride;
    }
  }
};

struct InterpolationGradient {
  static HEADROOM_KERNEL_BODY void run(const Interpolation* shape, const float* above, float* to_from) {
    for (const Between& position : *shape->positions) {
      float* const first = to_from + position.row * shape->from_stride;
      float* const second = position.row + 1 < shape->from ? first + shape->from_stride : first;
      const float weight = position.weight, rest = 1.0F - weight;
#pragma GCC ivdep
      for (int64_t i = 0; i < shape->width; ++i) first[i] += rest * above[i];
#pragma GCC ivdep
      for (int64_t i = 0; i < shape->width; ++i) second[i] += weight * above[i];
      above += shape->to_stride;
    }
  }
};

HEADROOM_KERNEL_BODY double drained(float* sums, int64_t count) {
  double total = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    total += static_cast<double>(sums[i]);
    sums[i] = 0.0F;
  }
  return total;
}

struct CompareRows {
  static HEADROOM_KERNEL_BODY void run(const Compared* rows, float* scratch, LossSums* sums) {
    const int64_t joints = rows->joints;
    float *const absolute = scratch, *const square = scratch + joints;
    int64_t since = 0;
    for (int64_t t = 0; t < rows->samples; ++t) {
      if (!rows->mask[t]) continue;
      const float *const prediction = rows->prediction + t * joints, *const target = rows->target + t * joints;
#pragma GCC ivdep
      for (int64_t j = 0; j < joints; ++j) {
        const float error = prediction[j] - target[j];
        absolute[j] += std::fabs(error);
        square[j] += error * error;
      }
      ++sums->rows;
      if (++since < rows_at_once) continue;
      since = 0;
      sums->absolute += drained(absolute, joints);
      sums->square += drained(square, joints);
    }
    sums->absolute += drained(absolute, joints);
    sums->square += drained(square, joints);
  }
};

struct LossGradient {
  static HEADROOM_KERNEL_BODY void run(const Compared* rows, float absolute, float square, float* to) {
    const int64_t joints = rows->joints;
    for (int64_t t = 0; t < rows->samples; ++t, to += joints) {
      if (!rows->mask[t]) {
        std::fill_n(to, joints, 0.0F);
        continue;
      }
      const float *const prediction = rows->prediction + t * joints, *const target = rows->target + t * joints;
#pragma GCC ivdep
      for (int64_t j = 0; j < joints; ++j) {
        const float error = prediction[j] - target[j];
        const float sign = error > 0.0F ? absolute : (error < 0.0F ? -absolute : 0.0F * error);  // NaN stays
        to[j] = sign + 2.0F * square * error;
      }
    }
  }
};

// Rows [joints] of working memory.
enum Row { kByJoint, kSquare, kVelocity, kAcceleration, kJerk, kErrorVelocity, kBefore, kBefore2, kError, kRows };

struct Metrics {
  static HEADROOM_KERNEL_BODY void run(const Compared* rows, float* scratch, MetricSums* sums) {
    const int64_t joints = rows->joints;
    const auto row = [&](Row number) __attribute__((always_inline)) { return scratch + number * joints; };
    int64_t run = 0;  // rows up to this one that count, without a gap
    for (int64_t t = 0; t < rows->samples; ++t) {
      if (t % rows_at_once == 0) drain(rows, scratch, sums);
      if (!rows->mask[t]) {
        run = 0;
        continue;
      }
      add_error(rows->prediction + t * joints, rows->target + t * joints, joints, scratch, run > 0);
      if (run > 0) {
        add_motion(rows->prediction + t * joints, joints, row(kBefore), row(kBefore2), row(kVelocity),
                   row(kAcceleration), row(kJerk), run);
        ++sums->error.rows;
      }
      for (int64_t order = 0; order < std::min<int64_t>(run, 3); ++order) ++sums->prediction[order].rows;
      ++sums->rows;
      ++run;
    }
    drain(rows, scratch, sums);
  }

 private:
  static HEADROOM_KERNEL_BODY void add_error(const float* prediction, const float* target, int64_t joints,
                                             float* scratch, bool has_before) {
    float *const by_joint = scratch + kByJoint * joints, *const square = scratch + kSquare * joints;
    float *const velocity = scratch + kErrorVelocity * joints, *const before = scratch + kError * joints;
#pragma GCC ivdep
    for (int64_t j = 0; j < joints; ++j) {
      const float error = prediction[j] - target[j];
      by_joint[j] += std::fabs(error);
      square[j] += error * error;
      velocity[j] += has_before ? std::fabs(error - before[j]) : 0.0F;
      before[j] = error;
    }
  }

  // `before` and `before2` hold the first and the second difference of the row before.
  static HEADROOM_KERNEL_BODY void add_motion(const float* now, int64_t joints, float* before, float* before2,
                                              float* velocity, float* acceleration, float* jerk, int64_t run) {
    const bool second = run > 1, third = run > 2;
#pragma GCC ivdep
    for (int64_t j = 0; j < joints; ++j) {
      const float first_difference = now[j] - now[j - joints];
      const float second_difference = first_difference - before[j];
      velocity[j] += std::fabs(first_difference);
      acceleration[j] += second ? std::fabs(second_difference) : 0.0F;
      jerk[j] += third ? std::fabs(second_difference - before2[j]) : 0.0F;
      before[j] = first_difference;
      before2[j] = second_difference;
    }
  }

  static HEADROOM_KERNEL_BODY void drain(const Compared* rows, float* scratch, MetricSums* sums) {
    const int64_t joints = rows->joints;
    for (int64_t j = 0; j < joints; ++j) sums->by_joint[static_cast<std::size_t>(j)] += static_cast<double>(scratch[j]);
    std::fill_n(scratch, joints, 0.0F);
    sums->square += drained(scratch + kSquare * joints, joints);
    sums->prediction[0].sum += drained(scratch + kVelocity * joints, joints);
    sums->prediction[1].sum += drained(scratch + kAcceleration * joints, joints);
    sums->prediction[2].sum += drained(scratch + kJerk * joints, joints);
    sums->error.sum += drained(scratch + kErrorVelocity * joints, joints);
  }
};

}  // namespace

std::vector<Between> positions_between(int64_t from, int64_t to, bool align_corners) {
  std::vector<Between> positions;
  const float scale = align_corners ? (to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1) : 0.0F)
                                    : static_cast<float>(from) / static_cast<float>(to);
  for (int64_t i = 0; i < to; ++i) {
    const auto place = static_cast<float>(i);
    const float at = align_corners ? scale * place : std::max(0.0F, scale * (place + 0.5F) - 0.5F);
    const int64_t row = std::min(static_cast<int64_t>(at), from - 1);
    positions.push_back({row, std::clamp(at - static_cast<float>(row), 0.0F, 1.0F)});
  }
  return positions;
}

void interpolate_rows(const Interpolation& shape, const float* from, float* to) {
  sdk::run_kernel<Interpolate>(&shape, from, to);
}
void add_interpolation_gradient(const Interpolation& shape, const float* above, float* to_from) {
  sdk::run_kernel<InterpolationGradient>(&shape, above, to_from);
}

LossSums compare_rows(const Compared& rows) {
  std::vector<float> scratch(static_cast<std::size_t>(2 * rows.joints));
  LossSums sums;
  sdk::run_kernel<CompareRows>(&rows, scratch.data(), &sums);
  return sums;
}
void loss_gradient(const Compared& rows, float absolute, float square, float* to_prediction) {
  sdk::run_kernel<LossGradient>(&rows, absolute, square, to_prediction);
}

void add_metrics(const Compared& rows, MetricSums& sums) {
  std::vector<float> scratch(static_cast<std::size_t>(kRows * rows.joints));
  sdk::run_kernel<Metrics>(&rows, scratch.data(), &sums);
}

}  // namespace headroom
