#include "report/scale.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "memory/readable.hpp"
#include "record/numbers.hpp"

namespace headroom {

namespace {

// The smallest of 1, 2, 5 times a power of ten that makes at most `count` steps of `span`.
double round_step(double span, int count) {
  const double rough = span / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    // A little less will do: rounding must not push an exact step to the next.
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10 * power;
}

// As clocks divide.
double time_step(double seconds, int count) {
  constexpr std::array<double, 18> steps = {5,    10,   15,   20,    30,    60,    120,   300,    600,
                                            1200, 1800, 3600, 10800, 21600, 43200, 86400, 172800, 604800};
  if (seconds / steps[0] < count) return round_step(seconds, count);
  for (const double step : steps) {
    if (seconds / step <= count) return step;
  }
  return 604800 * round_step(seconds / 604800, count);
}

// The unit that makes figures below 1,024 of `most` bytes.
std::pair<double, const char*> byte_unit(double most) {
  constexpr std::array<const char*, 5> names = {"B", "KiB", "MiB", "GiB", "TiB"};
  double unit = 1;
  size_t power = 0;
  while (power + 1 < names.size() && most >= 1024 * unit) {
    unit *= 1024;
    ++power;
  }
  return {unit, names[power]};
}

double step_of(double span, double most, Quantity quantity, int count) {
  switch (quantity) {
    case Quantity::bytes: {
      const double unit = byte_unit(most).first;
      return round_step(span / unit, count) * unit;
    }
    case Quantity::seconds:
      return time_step(span, count);
    case Quantity::count:
      return std::max(1.0, round_step(span, count));
    default:
      return round_step(span, count);
  }
}

std::string fixed(double value, int decimals) {
  std::array<char, 64> text;
  // printf() would write -0 with its sign.
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value == 0 ? 0.0 : value);
  return text.data();
}

// As many as tell one tick from the next. 1e-9 absorbs the rounding of the logarithm.
int decimals_of(double step) { return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9); }

// Of the largest value, so that a step changes the last one; never less than four.
int digits_of(double step, double most) {
  return std::clamp(static_cast<int>(std::floor(std::log10(most)) - std::floor(std::log10(step))) + 1, 4, 15);
}

std::string with_commas(double value) {
  std::string digits = fixed(std::abs(value), 0);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return (value < 0 ? "-" : "") + digits;
}

// By the largest value, so that all labels of an axis have one unit.
std::string count_label(double value, double most) {
  if (most >= 1e7) return short_number(value / 1e6) + "M";
  if (most >= 1e4) return value == 0 ? "0" : short_number(value / 1e3) + "k";
  return fixed(value, 0);
}

std::string time_label(double seconds, double step) {
  if (seconds == 0) return "0";
  if (step >= 86400) return fixed(seconds / 86400, decimals_of(step / 86400)) + " d";
  if (step >= 3600) return fixed(seconds / 3600, decimals_of(step / 3600)) + " h";
  if (step >= 60) return fixed(seconds / 60, decimals_of(step / 60)) + " min";
  if (seconds < 60 || step < 5) return fixed(seconds, decimals_of(step)) + " s";
  return short_duration(seconds);
}

std::string tick_label(double value, double step, double most, Quantity quantity) {
  switch (quantity) {
    case Quantity::bytes: {
      const auto [unit, name] = byte_unit(most);
      return value == 0 ? "0" : fixed(value / unit, decimals_of(step / unit)) + " " + name;
    }
    case Quantity::seconds:
      return time_label(value, step);
    case Quantity::count:
      return count_label(value, most);
    default:
      // A tick at 0 may miss it by a rounding error, and 1e-17 is no label.
      if (most >= 1e5 || most < 1e-3)
        return short_number(std::abs(value) < step / 2 ? 0 : value, digits_of(step, most));
      return fixed(std::abs(value) < step / 2 ? 0 : value, decimals_of(step));
  }
}

}  // namespace

std::string amount_text(double value, Quantity quantity) {
  if (!std::isfinite(value)) return exact_number(value);
  switch (quantity) {
    case Quantity::bytes:
      // A double beyond int64 cannot be converted (undefined behaviour).
      return size_text(static_cast<int64_t>(std::clamp(value, -9e18, 9e18)));
    case Quantity::seconds:
      // time_text() counts in int64.
      if (std::abs(value) > 1e15) return short_number(value) + " s";
      // Below a second time_text() has two decimals at most.
      if (std::abs(value) < 0.0005) return value == 0 ? "0 s" : short_number(value * 1e6) + " us";
      return std::abs(value) < 0.95 ? short_number(std::round(value * 1e5) / 100) + " ms" : time_text(value);
    case Quantity::count:
      // What int64 holds; more digits would be made up.
      return std::abs(value) < 1e19 ? with_commas(value) : short_number(value);
    default:
      return short_number(value);
  }
}

namespace {

// Values without a meaning of their own come from sums that ran away or died out. Within these bounds differences,
// ratios and logarithms are numbers.
double within_bounds(double value) { return std::abs(value) < 1e-290 ? 0 : std::clamp(value, -1e290, 1e290); }

}  // namespace

Scale Scale::rounded(double lowest, double highest, Quantity quantity, int ticks) {
  lowest = within_bounds(lowest), highest = within_bounds(highest);
  // From 0 where the values keep at least 40 % of the axis.
  if (lowest >= 0 && lowest < 0.6 * highest) lowest = 0;
  // Closer values cannot be told apart by their labels.
  if (!(highest - lowest > 1e-8 * std::max(std::abs(lowest), std::abs(highest)))) {
    const double around = lowest == 0 ? 1 : std::abs(lowest) * 0.1;
    lowest = lowest > 0 ? lowest - around : lowest == 0 ? 0 : lowest - around;
    highest += around;
  }
  const double step = step_of(highest - lowest, std::max(std::abs(lowest), std::abs(highest)), quantity, ticks);
  // 1e-9: an end that is a multiple of the step stays where it is, in spite of rounding.
  return {std::floor(lowest / step + 1e-9) * step, std::ceil(highest / step - 1e-9) * step, step, quantity};
}

Scale Scale::exact(double lowest, double highest, Quantity quantity, int ticks) {
  lowest = within_bounds(lowest), highest = within_bounds(highest);
  if (!(highest > lowest)) highest = lowest + 1;
  return {lowest, highest, step_of(highest - lowest, std::max(std::abs(lowest), std::abs(highest)), quantity, ticks),
          quantity};
}

Scale Scale::fitting(double lowest, double highest, Quantity quantity) {
  constexpr double decades = 100;
  lowest = within_bounds(lowest), highest = within_bounds(highest);
  if (!(lowest > 0 && highest / lowest > decades)) return rounded(lowest, highest, quantity);
  return {lowest / 1.1, highest * 1.1, 10, quantity, /*logarithmic=*/true};
}

double Scale::place(double value) const {
  // Values of 0 and less have no logarithm: they are placed far below.
  if (logarithmic_) return std::log(std::max(value, 1e-300) / lowest_) / std::log(highest_ / lowest_);
  return (value - lowest_) / (highest_ - lowest_);
}

std::vector<Tick> Scale::logarithmic_ticks() const {
  std::vector<Tick> ticks;
  const double span = std::log10(highest_ / lowest_);
  // Some five labels: of many decades every second, third, ... has one.
  const int every = std::max(1, static_cast<int>(std::ceil(span / 5)));
  for (int power = static_cast<int>(std::ceil(std::log10(lowest_))); std::pow(10.0, power) <= highest_; ++power) {
    if (power % every != 0) continue;
    const double value = std::pow(10.0, power);
    ticks.push_back(
        {place(value), quantity_ == Quantity::number ? short_number(value) : amount_text(value, quantity_)});
  }
  return ticks;
}

std::vector<Tick> Scale::ticks() const {
  if (logarithmic_) return logarithmic_ticks();
  std::vector<Tick> ticks;
  const double most = std::max(std::abs(lowest_), std::abs(highest_));
  constexpr int too_many = 50;
  for (int i = 0; i < too_many; ++i) {
    // Multiples, not sums of steps, whose rounding errors would add up.
    const double value = (std::ceil(lowest_ / step_ - 1e-9) + i) * step_;
    if (value > highest_ + step_ * 1e-6) break;
    ticks.push_back({place(value), tick_label(value, step_, most, quantity_)});
  }
  return ticks;
}

}  // namespace headroom
