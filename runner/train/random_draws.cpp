#include "train/random_draws.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/normal_native.h>
#include <ATen/ops/uniform_native.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "train/mersenne_twister.hpp"

namespace headroom {

namespace {

constexpr int64_t least_numbers = 4096, least_of_a_part = int64_t{1} << 18;
constexpr int64_t most_parts = 4;     // each repeats the changes of state of those before it
constexpr int64_t normal_block = 16;  // LibTorch makes so many normal numbers of as many words at a time

using Own = std::optional<at::Generator>;

MersenneTwister twister_of(at::mt19937 engine) {
  const at::mt19937_data_pod data = engine.data();
  return {data.state_, MersenneTwister::size + 1 - static_cast<uint32_t>(data.left_)};
}

void set_twister(at::CPUGeneratorImpl& generator, const MersenneTwister& twister) {
  at::mt19937 engine = generator.engine();
  at::mt19937_data_pod data = engine.data();
  data.state_ = twister.state;
  data.next_ = twister.next;
  data.left_ = static_cast<int>(MersenneTwister::size + 1 - twister.next);
  engine.set_data(data);
  generator.set_engine(engine);
}

std::span<float> values_of(at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

struct Parts {
  int64_t count;
  bool at_once;  // by OpenMP's threads
};

// `draw_part`(values, twister) draws a word for each value, and the last part whatever it likes.
template <class DrawPart>
void draw_in_parts(std::span<float> values, Parts parts, const Own& own, const DrawPart& draw_part) {
  auto& generator = *at::get_generator_or_default<at::CPUGeneratorImpl>(own, at::detail::getDefaultCPUGenerator());
  const std::lock_guard lock(generator.mutex_);
  const MersenneTwister first = twister_of(generator.engine());
  MersenneTwister last;
  const auto count = static_cast<int64_t>(values.size());
  const auto begin_of = [&](int64_t part) {
    return part == parts.count ? count : count * part / parts.count / normal_block * normal_block;
  };
  const auto draw_some = [&](int64_t from, int64_t to) {
    for (int64_t part = from; part < to; ++part) {
      const int64_t begin = begin_of(part), end = begin_of(part + 1);
      MersenneTwister twister = first;
      twister.skip(begin);
      draw_part(values.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), twister);
      if (part == parts.count - 1) last = twister;
    }
  };
  if (parts.at_once) {
    at::parallel_for(0, parts.count, 1, draw_some);
  } else {
    draw_some(0, parts.count);
  }
  set_twister(generator, last);
}

Parts parts_of(const at::Tensor& to) {
  const int64_t most = std::min<int64_t>(at::get_num_threads(), most_parts);
  return {.count = std::clamp<int64_t>(to.numel() / least_of_a_part, 1, most), .at_once = true};
}

bool is_large_and_plain(const at::Tensor& to) {
  return to.scalar_type() == at::kFloat && to.is_contiguous() && to.numel() >= least_numbers;
}

void draw_uniform_in(at::Tensor& to, Parts parts, double from, double below, const Own& own) {
  const auto least = static_cast<float>(from), width = static_cast<float>(below) - least;
  draw_in_parts(values_of(to), parts, own, [&](std::span<float> values, MersenneTwister& twister) {
    draw_uniform(twister, values, least, width);
  });
}

void draw_normal_in(at::Tensor& to, Parts parts, double mean, double std, const Own& own) {
  draw_in_parts(values_of(to), parts, own, [&](std::span<float> values, MersenneTwister& twister) {
    at::Generator generator = at::detail::createCPUGenerator();
    auto& impl = *generator.get<at::CPUGeneratorImpl>();
    set_twister(impl, twister);
    at::Tensor part = at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kFloat);
    at::native::normal_(part, mean, std, generator);
    twister = twister_of(impl.engine());
  });
}

// Not what LibTorch refuses, nor where the largest number would be rounded to the upper bound: there its versions
// differ.
bool is_range_of_ours(double from, double below) {
  constexpr double most = std::numeric_limits<float>::max();
  if (!(from <= below && std::abs(from) <= most && std::abs(below) <= most && below - from <= most)) return false;
  constexpr float last = 1 - 0x1p-24F;
  const auto least = static_cast<float>(from), bound = static_cast<float>(below), width = bound - least;
  const float product = last * width;
  return std::max(std::fma(last, width, least), product + least) < bound;
}

at::Tensor& uniform(at::Tensor& to, double from, double below, Own own) {
  if (!is_large_and_plain(to) || !is_range_of_ours(from, below))
    return at::native::uniform_(to, from, below, std::move(own));
  draw_uniform_in(to, parts_of(to), from, below, own);
  return to;
}

at::Tensor& normal(at::Tensor& to, double mean, double std, Own own) {
  const Parts parts = parts_of(to);
  if (parts.count == 1 || !(std >= 0) || !is_large_and_plain(to))
    return at::native::normal_(to, mean, std, std::move(own));
  draw_normal_in(to, parts, mean, std, own);
  return to;
}

// Whether both draw the same, ours in parts. Starts no thread: there may be no memory for its stack, and OpenMP ends
// the process then.
template <class Theirs, class Ours>
bool draw_alike(Theirs* theirs, Ours* ours) try {
  const at::Generator wanted_by = at::detail::createCPUGenerator(), found_by = at::detail::createCPUGenerator();
  at::Tensor wanted = at::empty({least_numbers + 100}), found = at::empty({least_numbers + 100});
  theirs(wanted, -0.3, 0.4, wanted_by);
  ours(found, {.count = most_parts, .at_once = false}, -0.3, 0.4, found_by);
  return wanted.equal(found) && wanted_by.get_state().equal(found_by.get_state());
} catch (const c10::Error&) {  // no memory for it; who needs some says so later
  return false;
}

class Silence : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

// Kept for ever, as LibTorch's own kernels are.
template <class Kernel>
c10::RegistrationHandleRAII* replaced(const char* name, Kernel* kernel) {
  Silence silence;  // it warns of any kernel that is replaced
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  return new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerImpl(
      {name, ""}, c10::DispatchKey::CPU, c10::KernelFunction::makeFromUnboxedRuntimeFunction(kernel), std::nullopt,
      nullptr, "headroom: the same numbers, sooner"));
}

}  // namespace

FastDraws draw_random_numbers_fast() {
  static const c10::RegistrationHandleRAII* const uniform_kept =
      draw_alike(&at::native::uniform_, &draw_uniform_in) ? replaced("aten::uniform_", &uniform) : nullptr;
  static const c10::RegistrationHandleRAII* const normal_kept =
      draw_alike(&at::native::normal_, &draw_normal_in) ? replaced("aten::normal_", &normal) : nullptr;
  return {.uniform = uniform_kept != nullptr, .normal = normal_kept != nullptr};
}

}  // namespace headroom
