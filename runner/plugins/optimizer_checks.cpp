#include "plugins/optimizer_checks.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <new>

#include "headroom/sdk/finite.hpp"
#include "plugins/optimizer_plugin.hpp"
#include "plugins/option_checks.hpp"

namespace headroom {

namespace {

constexpr size_t guard_numbers = 16;
constexpr float guard_number = 12345.5f;
constexpr int64_t tried_steps = 3;

[[noreturn]] void refuse_step(const std::string& sentence) { throw Error(Exit::plugin, "plugin", sentence); }

// As optimizer.h promises.
template <class T>
struct Aligned64 {
  using value_type = T;
  Aligned64() = default;
  template <class U>
  Aligned64(const Aligned64<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* data, size_t) { ::operator delete (data, std::align_val_t{64}); }
  bool operator==(const Aligned64&) const = default;
};

// Numbers with a guard behind them.
class GuardedNumbers {
 public:
  GuardedNumbers(uint64_t elements, float value) : numbers_(elements + guard_numbers, guard_number) {
    std::ranges::fill(all(), value);
  }
  std::span<float> all() { return std::span(numbers_).first(numbers_.size() - guard_numbers); }
  hr_buffer native() { return {numbers_.data(), numbers_.size() - guard_numbers}; }
  bool whole() const {
    return std::all_of(numbers_.end() - guard_numbers, numbers_.end(), [](float x) { return x == guard_number; });
  }
  bool operator==(const GuardedNumbers&) const = default;

 private:
  std::vector<float, Aligned64<float>> numbers_;
};

// A made-up parameter, and what an optimizer keeps of it.
struct MadeParameter {
  MadeParameter(const OptimizerPlugin& plugin, std::string called, std::vector<int64_t> extents)
      : name(std::move(called)), shape(std::move(extents)), values(count(shape), 0.0f), gradient(count(shape), 0.0f) {
    trained = {sizeof(hr_trained), static_cast<int32_t>(shape.size()),
               name.c_str(),       nullptr,
               {kDLFloat, 32, 1},  0u,
               shape.data(),       count(shape)};
    for (size_t i = 0; i < values.all().size(); ++i) values.all()[i] = std::sin(static_cast<float>(i + 1));
    const OptimizerPlugin::Needs needs = plugin.needs(trained);
    for (const auto& buffer : needs.state) state.emplace_back(buffer.elements, 0.0f);
    for (GuardedNumbers& buffer : state) native_state.push_back(buffer.native());
    scratch_elements = needs.scratch;
  }
  static uint64_t count(const std::vector<int64_t>& shape) {
    uint64_t product = 1;
    for (const int64_t extent : shape) product *= static_cast<uint64_t>(extent);
    return product;
  }

  std::string name;
  std::vector<int64_t> shape;
  GuardedNumbers values, gradient;
  std::deque<GuardedNumbers> state;
  std::vector<hr_buffer> native_state;
  uint64_t scratch_elements = 0;
  hr_trained trained{};
};

// Parameters of several shapes, and steps of them.
class OptimizerTrial {
 public:
  OptimizerTrial(const OptimizerPlugin& plugin, float scratch_value) : scratch_(0, 0.0f) {
    const std::vector<int64_t> shapes[] = {{6, 4}, {4, 6}, {5}, {}, {3, 2, 2, 2}};
    for (const auto& shape : shapes) made_.emplace_back(plugin, "p" + std::to_string(made_.size()), shape);
    uint64_t most = 0;
    for (const MadeParameter& made : made_) most = std::max(most, made.scratch_elements);
    scratch_ = GuardedNumbers(most, scratch_value);
  }

  void step(const OptimizerPlugin& plugin, int64_t number) {
    std::vector<hr_update> updates;
    for (MadeParameter& made : made_) {
      for (size_t i = 0; i < made.gradient.all().size(); ++i)
        made.gradient.all()[i] = std::cos(static_cast<float>(i * i) + static_cast<float>(number));
      updates.push_back({sizeof(hr_update), 0u, &made.trained, 0.01, 0.1, number, made.values.native(),
                         made.gradient.native(), made.native_state.data(), made.native_state.size(),
                         scratch_.native()});
    }
    plugin.step(number, updates);
    for (MadeParameter& made : made_) require_sound(made);
    if (!scratch_.whole()) refuse_step("a step writes past the end of its scratch: ask for more by needs()");
  }

  bool same_as(const OptimizerTrial& other) const {
    return std::ranges::equal(made_, other.made_, [](const MadeParameter& a, const MadeParameter& b) {
      return a.values == b.values && std::ranges::equal(a.state, b.state);
    });
  }

 private:
  static void require_sound(MadeParameter& made) {
    const auto is_whole = [](const GuardedNumbers& buffer) { return buffer.whole(); };
    if (!made.values.whole() || !made.gradient.whole() || !std::ranges::all_of(made.state, is_whole))
      refuse_step("a step writes past the end of a buffer of parameter '" + made.name + "'");
    if (sdk::first_not_finite(std::span<const float>(made.values.all())))
      refuse_step("a step leaves numbers that are not finite in parameter '" + made.name +
                  "', whose gradient is finite");
  }

  std::deque<MadeParameter> made_;  // never moved: what is native borrows from them
  GuardedNumbers scratch_;
};

// With the defaults, or what is allowed where there is none.
std::unique_ptr<OptimizerPlugin> made_of(const Library& library) {
  const OptionTable table = to_option_table(library.optimizer()->options, library.id());
  TrainSection train;
  train.optimizer.name = library.id();
  train.optimizer_options = options_to_toml(table, trial_values(table));
  try {
    return std::make_unique<OptimizerPlugin>(library, train, *Session::of_process());
  } catch (const Error& problem) {
    if (problem.exit_code() != Exit::bad_input) throw;
    throw DoesNotApply{problem.what()};
  }
}

void require_steps(const Library& library) {
  const auto plugin = made_of(library);
  OptimizerTrial trial(*plugin, 0.0f);
  const OptimizerTrial untouched(*plugin, 0.0f);
  for (int64_t i = 0; i < tried_steps; ++i) trial.step(*plugin, i);
  if (trial.same_as(untouched)) refuse_step("three steps change neither parameters nor state");
}

// As a run that is resumed after its first step, with something else in its scratch.
void require_resumable(const Library& library) {
  const auto whole = made_of(library);
  auto resumed = made_of(library);
  OptimizerTrial expected(*whole, 0.0f), found(*resumed, 7.0f);
  for (int64_t i = 0; i < tried_steps; ++i) expected.step(*whole, i);
  found.step(*resumed, 0);
  resumed = made_of(library);
  for (int64_t i = 1; i < tried_steps; ++i) found.step(*resumed, i);
  if (!found.same_as(expected)) {
    refuse_step(
        "an optimizer that is made anew after the first step goes on otherwise: what it remembers must lie in the "
        "buffers that needs() asks for, and nothing may be read from scratch before it was written");
  }
}

}  // namespace

void check_optimizer(CheckList& list, const std::optional<Library>& library) {
  const auto check = [&](const char* name, void (*body)(const Library&)) {
    list.check(name, [&] {
      if (!library || library->optimizer() == nullptr) throw DoesNotApply{"it is not an optimizer"};
      body(*library);
    });
  };
  check("optimizer: steps made-up parameters within its buffers", require_steps);
  check("optimizer: goes on bit-equal from its buffers", require_resumable);
}

}  // namespace headroom
