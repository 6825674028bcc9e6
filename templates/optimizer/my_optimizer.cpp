// my_optimizer: an optimizer plugin. Here the sign of a momentum, so that every element moves by the learning rate; put
// your own rule in its place. headroom/optimizer.hpp lists every member that the class may have. It needs no LibTorch.
#include "headroom/optimizer.hpp"

namespace {

using namespace headroom::sdk;

class MyOptimizer {
 public:
  // The keys of [train.optimizer_options].
  static OptionList options() { return {opt_f64("momentum").def(0.9).min(0).help("decay of the mean of gradients")}; }

  explicit MyOptimizer(const Options& options) : momentum_(options.f64("momentum")) {
    if (momentum_ >= 1) invalid("momentum is " + std::to_string(momentum_) + "; it must be below 1");
  }

  // What it remembers of a parameter: buffers that the host makes at zero, accounts for and puts into checkpoints.
  std::vector<State> state(const Trained& parameter) const { return {{"momentum", parameter.elements()}}; }

  // One parameter in one step. It is const and takes no memory: whatever else the object remembered would be lost when
  // a run is resumed. double as well as float, so that train.precision = "fp64" works.
  template <class T>
  void update(const Update<T>& u) const {
    const auto p = u.values(), g = u.gradient(), m = u.state(0);
    const T momentum = static_cast<T>(momentum_), rate = static_cast<T>(u.lr()),
            kept = static_cast<T>(1 - u.lr() * u.weight_decay());
    for (std::size_t i = 0; i < p.size(); ++i) {
      m[i] = momentum * m[i] + (1 - momentum) * g[i];
      const T sign = m[i] > 0 ? T{1} : m[i] < 0 ? T{-1} : T{0};
      p[i] = kept * p[i] - rate * sign;
    }
  }

 private:
  double momentum_;
};

}  // namespace

HEADROOM_PLUGIN(.id = "my_optimizer", .version = "0.1", .summary = "The sign of a momentum",
                .interfaces = {headroom::sdk::optimizer<MyOptimizer>()});
