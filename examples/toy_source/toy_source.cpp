// A datasource without files: x of n numbers drawn from the sample's index, y = x W + b with noise. The smallest plugin
// a model can learn from; linear_model recovers W and b.
#include <algorithm>

#include "headroom/datasource.hpp"

namespace {

using namespace headroom::sdk;

class Toy {
 public:
  static OptionList options() {
    return {opt_i64("samples").def(1000).min(1).help("samples in all"),
            opt_i64("inputs").def(3).min(1).max(1000).help("numbers in x"),
            opt_f64("noise").def(0.1).min(0).help("standard deviation of what y adds to the line"),
            opt_i64("seed").def(0).help("another seed, other samples")};
  }

  explicit Toy(const Options& options)
      : samples_(options.i64("samples")),
        inputs_(options.i64("inputs")),
        noise_(options.f64("noise")),
        seed_(static_cast<uint64_t>(options.i64("seed"))) {}

  std::vector<Field> fields() const {
    return {{.name = "x", .shape = {inputs_}, .axes = {"channel"}, .channel_axis = 0, .normalize = true},
            {.name = "y", .shape = {1}}};
  }

  uint64_t length() const { return static_cast<uint64_t>(samples_); }
  bool augments() const { return false; }

  void read(const ReadRequest& request) const {
    std::vector<double> x(static_cast<std::size_t>(inputs_));
    for (uint64_t i = 0; i < request.count(); ++i) {
      const uint64_t key = hr_sample_key(seed_, request.split(), 0, request.index(i));
      double y = 0.5 + noise_ * normal(key, "noise"_site);
      for (std::size_t k = 0; k < x.size(); ++k) {
        x[k] = normal(key, "x"_site, k);
        y += x[k] * (1.0 + static_cast<double>(k));
      }
      if (request.wanted(0)) std::ranges::copy(x, request.slot<float>(0, i).begin());
      for (float& value : request.slot<float>(1, i)) value = static_cast<float>(y);
    }
  }

 private:
  int64_t samples_, inputs_;
  double noise_;
  uint64_t seed_;
};

}  // namespace

HEADROOM_PLUGIN(.id = "toy_source", .version = "1.0", .summary = "A straight line with noise: the smallest datasource",
                .interfaces = {headroom::sdk::datasource<Toy>()});
