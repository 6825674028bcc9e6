// my_source: a datasource plugin. Here recordings that are computed; read your own files in their place (sdk::Array
// reads HDF5 through the host). headroom/datasource.hpp lists every member that the class may have.
#include <cmath>

#include "headroom/datasource.hpp"

namespace {

using namespace headroom::sdk;

class MySource {
 public:
  // The keys of [data.options].
  static OptionList options() {
    return {opt_i64("recordings").def(20).min(2).help("recordings, which stay in one split each"),
            opt_i64("samples").def(50).min(1).help("samples of a recording"),
            opt_f64("noise").def(0.05).min(0).help("standard deviation of what is added to y")};
  }

  explicit MySource(const Options& options)
      : recordings_(static_cast<uint64_t>(options.i64("recordings"))),
        samples_(static_cast<uint64_t>(options.i64("samples"))),
        noise_(options.f64("noise")) {}

  // What every sample holds.
  std::vector<Field> fields() const {
    return {{.name = "x", .shape = {inputs}, .axes = {"channel"}, .channel_axis = 0, .normalize = true},
            {.name = "y", .shape = {1}}};
  }

  uint64_t length() const { return recordings_ * samples_; }
  // Samples of one recording belong to one split.
  std::vector<Group> groups() const {
    std::vector<Group> groups;
    for (uint64_t i = 0; i < recordings_; ++i)
      groups.push_back({"recording_" + std::to_string(i), i * samples_, samples_});
    return groups;
  }
  // A read draws nothing from the sample's key, so the host may keep what it read.
  bool augments() const { return false; }

  // A pure function of the data, the index and the key: it may run on any thread, for any samples at once.
  void read(const ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i) {
      const uint64_t key = hr_sample_key(/*seed=*/1, request.split(), /*epoch=*/0, request.index(i));
      double y = noise_ * normal(key, "noise"_site);
      const auto x = request.slot<float>(0, i), target = request.slot<float>(1, i);
      for (int64_t channel = 0; channel < inputs; ++channel) {
        const double value = normal(key, "x"_site, static_cast<uint64_t>(channel));
        y += std::sin(value) * static_cast<double>(channel + 1);
        if (!x.empty()) x[static_cast<std::size_t>(channel)] = static_cast<float>(value);
      }
      if (!target.empty()) target[0] = static_cast<float>(y);
    }
  }

 private:
  static constexpr int64_t inputs = 4;
  uint64_t recordings_, samples_;
  double noise_;
};

}  // namespace

HEADROOM_PLUGIN(.id = "my_source", .version = "0.1", .summary = "Recordings of a known function, with noise",
                .interfaces = {headroom::sdk::datasource<MySource>()});
