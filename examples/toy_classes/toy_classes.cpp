// A datasource of named classes without files: x of n numbers around the centre of its class, and the class as an
// integer. The smallest plugin that the classifier can learn from.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "headroom/datasource.hpp"

namespace {

using namespace headroom::sdk;

class ToyClasses {
 public:
  static OptionList options() {
    return {opt_i64("samples").def(1000).min(1).help("samples in all"),
            opt_i64("inputs").def(8).min(2).max(1000).help("numbers in x"),
            opt_strings("names").def("[\"circle\", \"square\", \"star\"]").help("classes, in their order"),
            opt_f64("noise").def(0.5).min(0).help("standard deviation of x about the centre of its class"),
            opt_f64("rarity").def(1.0).min(1).help("each class is so many times rarer than the one before it"),
            opt_i64("seed").def(0).help("another seed, other samples")};
  }

  explicit ToyClasses(const Options& options)
      : samples_(options.i64("samples")),
        inputs_(options.i64("inputs")),
        names_(options.list_string("names")),
        noise_(options.f64("noise")),
        seed_(static_cast<uint64_t>(options.i64("seed"))) {
    if (names_.size() < 2) throw Error(HR_INVALID_ARGUMENT, "names lists fewer than two classes");
    double share = 1.0, sum = 0.0;
    for (std::size_t c = 0; c < names_.size(); ++c, share /= options.f64("rarity")) ends_.push_back(sum += share);
  }

  std::vector<Field> fields() const {
    return {{.name = "x", .shape = {inputs_}, .axes = {"channel"}}, {.name = "label", .dtype = i64}};
  }
  std::vector<std::string> class_names(uint32_t field) const {
    return field == 1 ? names_ : std::vector<std::string>();
  }

  uint64_t length() const { return static_cast<uint64_t>(samples_); }
  bool augments() const { return false; }

  void read(const ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i) {
      const uint64_t key = hr_sample_key(seed_, request.split(), 0, request.index(i));
      const std::size_t label = class_of(uniform(key, "label"_site, 0));
      const std::span<float> x = request.slot<float>(0, i);
      for (std::size_t k = 0; k < x.size(); ++k)
        x[k] = static_cast<float>(centre(label, k) + noise_ * normal(key, "x"_site, k));
      for (int64_t& value : request.slot<int64_t>(1, i)) value = static_cast<int64_t>(label);
    }
  }

 private:
  std::size_t class_of(double draw) const {
    const auto end = std::ranges::upper_bound(ends_, draw * ends_.back());
    return std::min(static_cast<std::size_t>(end - ends_.begin()), ends_.size() - 1);
  }
  // On a circle, seen from as many sides as x has numbers.
  double centre(std::size_t label, std::size_t k) const {
    const double turn = static_cast<double>(label) / static_cast<double>(names_.size()),
                 side = static_cast<double>(k) / static_cast<double>(inputs_);
    return std::cos(2.0 * std::numbers::pi * (turn + side));
  }

  int64_t samples_, inputs_;
  std::vector<std::string> names_;
  double noise_;
  uint64_t seed_;
  std::vector<double> ends_;  // running total of the classes' shares
};

}  // namespace

HEADROOM_PLUGIN(.id = "toy_classes", .version = "1.0", .summary = "Points around the centres of named classes",
                .interfaces = {headroom::sdk::datasource<ToyClasses>()});
