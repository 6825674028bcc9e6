// The C++ SDK for optimizer plugins (headroom/optimizer.h has the contract). Write a class with the members below and
// name it in HEADROOM_PLUGIN. Header-only; needs no LibTorch.
//
//   class Momentum {
//    public:
//     static OptionList options();                               // of [train.optimizer_options]; may be left out
//     explicit Momentum(const Options& options);                 // sdk::invalid() refuses what does not suit
//     std::vector<State> state(const Trained& parameter) const;  // {{"momentum", parameter.elements()}}: buffers
//                                                                // that it keeps of it; may be left out
//     uint64_t scratch(const Trained& parameter) const;          // elements that one update needs; may be left out
//     template <class T>                                         // float; double too, or fp64 is refused
//     void update(const Update<T>& u) const;                     // one parameter in one step
//   };
//   HEADROOM_PLUGIN(.id = "momentum", .version = "1.0", .summary = "...",
//                   .interfaces = {headroom::sdk::optimizer<Momentum>()});
//
// update() is const and takes no memory: what it remembers lies in the state, which checkpoints hold. It is called from
// one thread. Gradients are divided, clipped and finite; values must be finite afterwards.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/optimizer.h"
#include "headroom/sdk/error.hpp"
#include "headroom/sdk/options.hpp"
#include "headroom/sdk/plugin.hpp"

namespace headroom::sdk {

// A parameter that is trained. Borrowed for the call.
class Trained {
 public:
  explicit Trained(const hr_trained* parameter) : parameter_(parameter) {}

  std::string_view name() const { return parameter_->name; }
  std::string_view group() const { return parameter_->group != nullptr ? parameter_->group : ""; }
  std::span<const int64_t> shape() const { return {parameter_->shape, static_cast<std::size_t>(parameter_->ndim)}; }
  uint64_t elements() const { return parameter_->elements; }

 private:
  const hr_trained* parameter_;
};

// A buffer that lives from step to step, of the parameter's type; all zero at its first update.
struct State {
  std::string name;
  uint64_t elements = 0;
};

// One parameter in one step. Borrowed for the call.
template <class T>
class Update {
 public:
  explicit Update(const hr_update* update) : update_(update) {}

  Trained parameter() const { return Trained(update_->parameter); }
  double lr() const { return update_->lr; }
  double weight_decay() const { return update_->weight_decay; }
  int64_t updates() const { return update_->updates; }                        // of this parameter so far
  std::span<T> values() const { return all_of(update_->values); }             // to be changed in place
  std::span<T> gradient() const { return all_of(update_->gradient); }         // may be written over
  std::span<T> state(uint64_t i) const { return all_of(update_->state[i]); }  // in the order of state()
  std::span<T> scratch() const { return all_of(update_->scratch); }           // at least as many as asked for

 private:
  static std::span<T> all_of(const hr_buffer& buffer) { return {static_cast<T*>(buffer.data), buffer.elements}; }

  const hr_update* update_;
};

namespace detail {

template <class O, class T>
concept Updates = requires(const O& rule, const Update<T>& update) {
  rule.update(update);
};

template <class O>
struct OptimizerTable {
  static_assert(Updates<O, float>, "an optimizer has void update(const Update<float>& u) const");

  static const O& from(const hr_rule* rule) { return *reinterpret_cast<const O*>(rule); }

  static hr_status create(const hr_host*, const hr_value* values, hr_rule** out, hr_error* error) noexcept {
    return guard(error, [&] {
      const Options options(option_table<O>(), values);
      if constexpr (std::constructible_from<O, const Options&>) {
        *out = reinterpret_cast<hr_rule*>(new O(options));
      } else {
        *out = reinterpret_cast<hr_rule*>(new O());
      }
    });
  }
  static void destroy(hr_rule* rule) noexcept { delete reinterpret_cast<O*>(rule); }

  static hr_status needs(const hr_rule* rule, const hr_trained* parameter,
                         int32_t (*visit)(void*, const char*, uint64_t), void* context, uint64_t* scratch,
                         hr_error* error) noexcept {
    return guard(error, [&] {
      const Trained trained(parameter);
      *scratch = 0;
      if constexpr (requires { from(rule).scratch(trained); }) *scratch = from(rule).scratch(trained);
      if constexpr (requires { from(rule).state(trained); }) {
        for (const State& state : from(rule).state(trained)) {
          if (visit(context, state.name.c_str(), state.elements) != 0) return;
        }
      }
    });
  }

  static hr_status step(hr_rule* rule, const hr_optimizer_step* step, hr_error* error) noexcept {
    return guard(error, [&] {
      const char* bytes = reinterpret_cast<const char*>(step->updates);
      for (uint64_t i = 0; i < step->count; ++i)
        update(from(rule), reinterpret_cast<const hr_update*>(bytes + i * step->updates->struct_size));
    });
  }

  static void update(const O& rule, const hr_update* update) {
    if (update->parameter->dtype.bits == 32) {
      rule.update(Update<float>(update));
    } else if constexpr (Updates<O, double>) {
      rule.update(Update<double>(update));
    }
  }
};

}  // namespace detail

// The interface of an optimizer class, for HEADROOM_PLUGIN.
template <class O>
constexpr Interface optimizer() {
  return {.find = [](std::string_view id) -> const void* {
    using Table = detail::OptimizerTable<O>;
    if (id != HR_OPTIMIZER) return nullptr;
    static const hr_optimizer table{sizeof(hr_optimizer), detail::Updates<O, double> ? HR_OPTIMIZER_FP64 : 0u,
                                    option_table<O>(),    Table::create,
                                    Table::destroy,       Table::needs,
                                    Table::step};
    return &table;
  }};
}

}  // namespace headroom::sdk
