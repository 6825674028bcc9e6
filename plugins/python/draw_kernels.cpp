// The random operators of LibTorch, drawing by the keys of the thread's DrawScope.
#include <ATen/core/dispatch/Dispatcher.h>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "draws.hpp"
#include "headroom/sdk/keyed.hpp"

namespace headroom::python {

namespace {

constexpr c10::DispatchKey kKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;
using Generator = std::optional<at::Generator>;
using Words = std::array<uint32_t, 2>;

// Kernels run outside of the key: what they call is LibTorch's own.
struct Outside {
  c10::impl::ExcludeDispatchKeyGuard guard{kKey};
};

const DrawScope& scope_for(const char* name, const Generator& own) {
  if (own && own->defined() &&
      own->unsafeGetGeneratorImpl() != at::detail::getDefaultCPUGenerator().unsafeGetGeneratorImpl()) {
    throw sdk::Error(HR_UNSUPPORTED, std::string("a step calls ") + name +
                                         " with a generator of its own, whose numbers cannot be repeated sample by "
                                         "sample: leave the generator out");
  }
  return *DrawScope::current();
}

// Gives `value(word of element e)` to every element; `words` words make one.
template <class T, class Value>
void fill(at::Tensor& to, const DrawScope& scope, const DrawScope::Draw& draw, int words, const Value& value) {
  T* data = to.mutable_data_ptr<T>();
  const auto stream = [&](uint64_t key, int64_t elements, const auto& place_of) {
    Words pair{};
    sdk::detail::for_each_word(key, draw.place, elements * words, [&](int64_t w, uint32_t word) {
      if (words == 1) {
        data[place_of(w)] = static_cast<T>(value(Words{word, 0}));
      } else if ((w & 1) == 0) {
        pair[0] = word;
      } else {
        pair[1] = word;
        data[place_of(w / 2)] = static_cast<T>(value(pair));
      }
    });
  };
  if (draw.samples.axis < 0) {
    stream(scope.window_key(), to.numel(), [](int64_t e) { return e; });
    return;
  }
  const int64_t axis = draw.samples.axis, repeat = draw.samples.repeat;
  const auto count = static_cast<int64_t>(scope.keys().size());
  int64_t before = 1, behind = 1;
  for (int64_t i = 0; i < to.dim(); ++i) (i < axis ? before : behind) *= i == axis ? 1 : to.size(i);
  const int64_t row = repeat * behind, elements = before * row;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, elements));
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      stream(scope.keys()[static_cast<size_t>(i)], elements,
             [&](int64_t e) { return ((e / row) * count + i) * row + e % row; });
    }
  });
}

// A draw into `self`, through memory of its own where its layout or type needs that.
template <class Value>
void draw_into(at::Tensor& self, const DrawScope& scope, int words, const Value& value) {
  if (!self.device().is_cpu())
    throw sdk::Error(HR_UNSUPPORTED,
                     "a step draws on " + self.device().str() + ": draws of Python modules are keyed on the CPU only");
  if (self.is_complex())
    throw sdk::Error(HR_UNSUPPORTED, "a step draws complex numbers, which are not keyed: draw their two parts");
  if (self.numel() == 0) return;
  const DrawScope::Draw draw = scope.begin_draw(self.sizes());
  const Outside outside;
  const bool direct = self.is_contiguous() && !self.requires_grad() &&
                      (self.scalar_type() == at::kFloat || self.scalar_type() == at::kDouble);
  // Whole numbers up to 2^53 are exact in double.
  const auto type = direct                                         ? self.scalar_type()
                    : at::isIntegralType(self.scalar_type(), true) ? at::kDouble
                                                                   : at::kFloat;
  at::Tensor to =
      direct ? self
             : at::empty(self.sizes(), self.options().dtype(type).requires_grad(false).memory_format(std::nullopt));
  if (type == at::kFloat) {
    fill<float>(to, scope, draw, words, value);
  } else {
    fill<double>(to, scope, draw, words, value);
  }
  if (direct) {
    self.unsafeGetTensorImpl()->bump_version();
  } else {
    self.copy_(to);  // into a graph too: what was overwritten gets no gradient, as from LibTorch's own draws
  }
}

double unit(const Words& word) { return (word[0] >> 8) * 0x1p-24; }        // [0, 1)
double open_unit(const Words& word) { return (word[0] + 0.5) * 0x1p-32; }  // (0, 1)
double gaussian(const Words& w) {
  return std::sqrt(-2.0 * std::log((w[0] + 0.5) * 0x1p-32)) * std::cos(2.0 * std::numbers::pi * (w[1] * 0x1p-32));
}

at::Tensor& bernoulli_p(at::Tensor& self, double p, Generator own) {
  const DrawScope& scope = scope_for("bernoulli_", own);
  const auto threshold = static_cast<uint64_t>(std::llround(std::clamp(p, 0.0, 1.0) * 0x1p32));
  draw_into(self, scope, 1, [threshold](const Words& w) { return w[0] < threshold ? 1.0 : 0.0; });
  return self;
}

at::Tensor& bernoulli_tensor(at::Tensor& self, const at::Tensor& p, Generator own) {
  const DrawScope& scope = scope_for("bernoulli_", own);
  at::Tensor uniform;
  {
    const Outside outside;
    uniform = at::empty(self.sizes(), self.options().dtype(at::kDouble).requires_grad(false));
  }
  draw_into(uniform, scope, 1, [](const Words& w) { return open_unit(w); });
  const Outside outside;
  self.copy_(uniform.lt(p));
  return self;
}

at::Tensor& uniform(at::Tensor& self, double from, double to, Generator own) {
  draw_into(self, scope_for("uniform_", own), 1, [=](const Words& w) { return from + unit(w) * (to - from); });
  return self;
}

at::Tensor& normal(at::Tensor& self, double mean, double std, Generator own) {
  draw_into(self, scope_for("normal_", own), 2, [=](const Words& w) { return mean + std * gaussian(w); });
  return self;
}

at::Tensor& exponential(at::Tensor& self, double lambda, Generator own) {
  draw_into(self, scope_for("exponential_", own), 1, [=](const Words& w) { return -std::log(open_unit(w)) / lambda; });
  return self;
}

at::Tensor& random_between(at::Tensor& self, int64_t from, std::optional<int64_t> to, Generator own) {
  const DrawScope& scope = scope_for("random_", own);
  if (!to || *to <= from || static_cast<double>(*to) - static_cast<double>(from) > 0x1p53)
    throw sdk::Error(HR_UNSUPPORTED,
                     "a step calls random_ without bounds, which cannot be keyed by sample: give it from and to");
  const auto range = static_cast<double>(*to - from);
  draw_into(self, scope, 2, [=](const Words& w) {
    const uint64_t bits = (static_cast<uint64_t>(w[1]) << 32) | w[0];
    return static_cast<double>(from) + std::floor(static_cast<double>(bits >> 11) * 0x1p-53 * range);
  });
  return self;
}
at::Tensor& random_below(at::Tensor& self, int64_t to, Generator own) {
  return random_between(self, 0, to, std::move(own));
}

// mean + std x normal, of the shape that the two have together. Without a graph: LibTorch's own gives the two no
// gradient.
at::Tensor normal_around(const at::Tensor& mean, const at::Tensor& std, Generator own) {
  const auto sizes = at::infer_size(mean.sizes(), std.sizes());
  at::Tensor values;
  {
    const Outside outside;
    const auto type = at::result_type(mean, std);
    values = at::empty(sizes, mean.options().dtype(type).requires_grad(false));
  }
  normal(values, 0.0, 1.0, std::move(own));
  const Outside outside;
  const at::NoGradGuard no_grad;
  return values * std + mean;
}
at::Tensor normal_tensor_tensor(const at::Tensor& mean, const at::Tensor& std, Generator own) {
  return normal_around(mean, std, std::move(own));
}
at::Tensor normal_tensor_float(const at::Tensor& mean, double std, Generator own) {
  at::Tensor spread;
  {
    const Outside outside;
    spread = at::full({}, std, mean.options().requires_grad(false));
  }
  return normal_around(mean, spread, std::move(own));
}
at::Tensor normal_float_tensor(double mean, const at::Tensor& std, Generator own) {
  at::Tensor middle;
  {
    const Outside outside;
    middle = at::full({}, mean, std.options().requires_grad(false));
  }
  return normal_around(middle, std, std::move(own));
}

void refuse_draw(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  throw sdk::Error(HR_UNSUPPORTED, "a step calls " + op.schema().name() +
                                       ", whose numbers cannot be keyed by sample: draw with rand, randn, randint, "
                                       "bernoulli, dropout or exponential_");
}

// Kept for ever: the operators outlive every run.
template <class Kernel>
void intercept(const char* name, const char* overload, Kernel* kernel) {
  new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerImpl(
      {name, overload}, kKey, c10::KernelFunction::makeFromUnboxedRuntimeFunction(kernel), std::nullopt, nullptr,
      "headroom: draws keyed by sample"));
}

void refuse(const char* name, const char* overload) {
  if (!c10::Dispatcher::singleton().findSchema({name, overload})) return;  // another version of LibTorch
  new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerImpl(
      {name, overload}, kKey, c10::KernelFunction::makeFromBoxedFunction<&refuse_draw>(), std::nullopt, nullptr,
      "headroom: cannot be keyed"));
}

}  // namespace

void intercept_draws() {
  static const bool once = [] {
    new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerFallback(
        kKey, c10::KernelFunction::makeFallthrough(), "headroom: everything that draws nothing"));
    intercept("aten::bernoulli_", "float", &bernoulli_p);
    intercept("aten::bernoulli_", "Tensor", &bernoulli_tensor);
    intercept("aten::uniform_", "", &uniform);
    intercept("aten::normal_", "", &normal);
    intercept("aten::exponential_", "", &exponential);
    intercept("aten::random_", "from", &random_between);
    intercept("aten::random_", "to", &random_below);
    intercept("aten::normal", "Tensor_Tensor", &normal_tensor_tensor);
    intercept("aten::normal", "Tensor_float", &normal_tensor_float);
    intercept("aten::normal", "float_Tensor", &normal_float_tensor);
    for (const auto& [name, overload] :
         std::initializer_list<std::pair<const char*, const char*>>{{"aten::random_", ""},
                                                                    {"aten::randperm", "generator"},
                                                                    {"aten::randperm", "generator_out"},
                                                                    {"aten::randperm", ""},
                                                                    {"aten::normal", "Tensor_Tensor_out"},
                                                                    {"aten::normal", "Tensor_float_out"},
                                                                    {"aten::normal", "float_Tensor_out"},
                                                                    {"aten::geometric_", ""},
                                                                    {"aten::cauchy_", ""},
                                                                    {"aten::log_normal_", ""},
                                                                    {"aten::poisson", ""},
                                                                    {"aten::binomial", ""},
                                                                    {"aten::multinomial", ""},
                                                                    {"aten::_standard_gamma", ""},
                                                                    {"aten::_sample_dirichlet", ""},
                                                                    {"aten::rrelu_with_noise", ""},
                                                                    {"aten::rrelu_with_noise_", ""}}) {
      refuse(name, overload);
    }
    return true;
  }();
  (void)once;
}

}  // namespace headroom::python
