// A datasource for tests of memory: samples as large and as slow as asked for, and nothing to learn but their mean.
#include <algorithm>
#include <chrono>
#include <thread>

#include "headroom/datasource.hpp"

namespace {

using namespace headroom::sdk;

class HungrySource {
 public:
  static OptionList options() {
    return {opt_i64("floats").def(1024).min(1).help("numbers of float32 in a sample"),
            opt_i64("samples").def(64).min(1).help("samples in all"),
            opt_i64("sleep_ms").def(0).min(0).help("milliseconds that reading a sample takes at least")};
  }

  explicit HungrySource(const Options& options)
      : floats_(options.i64("floats")),
        samples_(static_cast<uint64_t>(options.i64("samples"))),
        sleep_(options.i64("sleep_ms")) {}

  std::vector<Field> fields() const {
    return {{.name = "x", .shape = {floats_}, .axes = {"time"}}, {.name = "y", .shape = {1}}};
  }
  uint64_t length() const { return samples_; }
  bool augments() const { return false; }

  void read(const ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i) {
      std::this_thread::sleep_for(sleep_);
      const auto level = static_cast<float>(normal(hr_sample_key(0, 0, 0, request.index(i)), "level"_site, 0));
      std::ranges::fill(request.slot<float>(0, i), level);
      std::ranges::fill(request.slot<float>(1, i), 1.0F + 0.5F * level);
    }
  }

 private:
  int64_t floats_;
  uint64_t samples_;
  std::chrono::milliseconds sleep_;
};

}  // namespace

HEADROOM_PLUGIN(.id = "hungry_source", .version = "1.0", .summary = "Large and slow samples for tests of memory",
                .interfaces = {headroom::sdk::datasource<HungrySource>()});
