// A datasource for tests of the loop: short sequences y = f(x) with a ragged mask, made from the sample's index.
// HEADROOM_TEST_READ = "crash" or "sleep" (for three seconds, once) is a mistake of its reads. Options damage chosen
// samples; with `path` the numbers depend on a file there, which [data.synth] can write.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string_view>
#include <thread>

#include "headroom/datasource.hpp"

namespace {

using namespace headroom::sdk;

constexpr int64_t kSteps = 6, kChannels = 3;

class TrialSource {
 public:
  static OptionList options() {
    return {opt_i64("samples").def(96).min(1).help("samples in all"),
            opt_i64("group_size").def(8).min(1).help("neighbouring samples that stay together"),
            opt_path("path").help("folder with seed.txt"),
            opt_i64s("nan_at").def("[]").help("samples whose target is not a number"),
            opt_i64s("masked").def("[]").help("samples without a valid step"),
            opt_i64s("broken_at").def("[]").help("samples that cannot be read"),
            opt_i64s("once_at").def("[]").help("samples for which there is no memory when they are read again"),
            opt_bool("forgets").def(false).help("it leaves the first target as the slot holds it")};
  }
  static OptionList synth_options() {
    return {opt_i64("seed").def(1).min(0).help("what seed.txt says"),
            opt_path("like").help("a file whose number it says instead")};
  }

  static void synthesise(const Host&, const Options& options, const std::filesystem::path& folder) {
    int64_t seed = options.i64("seed");
    if (options.has("like") && !(std::ifstream(options.path("like")) >> seed)) {
      throw Error(HR_INVALID_ARGUMENT, "data.synth.like: there is no number in " + options.path("like").string());
    }
    std::ofstream(folder / "seed.txt") << seed << '\n';
  }

  TrialSource(const Host& host, const Options& options)
      : samples_(static_cast<uint64_t>(options.i64("samples"))),
        group_size_(static_cast<uint64_t>(options.i64("group_size"))),
        nan_at_(options.list_i64("nan_at")),
        masked_(options.list_i64("masked")),
        broken_at_(options.list_i64("broken_at")),
        once_at_(options.list_i64("once_at")),
        forgets_(options.boolean("forgets")) {
    host.account("lists",
                 static_cast<int64_t>((nan_at_.size() + masked_.size() + broken_at_.size()) * sizeof(int64_t)));
    if (!options.has("path")) return;
    file_ = std::filesystem::path(options.path("path")) / "seed.txt";
    std::ifstream file(file_);
    if (!(file >> seed_)) throw Error(HR_NOT_FOUND, file_.string() + ": there is no number to read");
  }

  std::vector<Field> fields() const {
    return {{.name = "x",
             .shape = {kSteps, kChannels},
             .axes = {"time", "channel"},
             .unit = "V",
             .channel_axis = 1,
             .normalize = true},
            {.name = "y", .shape = {kSteps}, .axes = {"time"}, .unit = "m"},
            {.name = "valid", .dtype = u8, .shape = {kSteps}, .axes = {"time"}}};
  }

  std::vector<std::string> splits() const { return {"all"}; }
  uint64_t length(uint32_t) const { return samples_; }
  std::vector<Group> groups(uint32_t) const {
    std::vector<Group> groups;
    for (uint64_t first = 0; first < samples_; first += group_size_) {
      groups.push_back({"group" + std::to_string(groups.size()), first, std::min(group_size_, samples_ - first)});
    }
    return groups;
  }
  std::vector<std::filesystem::path> files() const {
    return file_.empty() ? std::vector<std::filesystem::path>{} : std::vector<std::filesystem::path>{file_};
  }

  void read(const ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i) read_one(request, i);
  }

 private:
  // The sanitizers leave the crash to the kernel.
  [[gnu::no_sanitize("address"), gnu::no_sanitize("undefined")]] void fail_when_asked() const {
    const char* fault = std::getenv("HEADROOM_TEST_READ");
    if (fault == nullptr) return;
    volatile int* nowhere = nullptr;
    if (std::string_view(fault) == "crash") *nowhere = 1;
    if (!slept_.exchange(true)) std::this_thread::sleep_for(std::chrono::seconds(3));
  }
  void read_one(const ReadRequest& request, uint64_t i) const {
    fail_when_asked();
    const uint64_t index = request.index(i), key = hr_sample_key(seed_, 0, 0, index);
    if (listed(broken_at_, index)) throw Error(HR_DATA_CORRUPT, "sample " + std::to_string(index) + " is damaged");
    if (listed(once_at_, index) && read_before_.exchange(true)) throw std::bad_alloc();
    const auto x = request.slot<float>(0, i), y = request.slot<float>(1, i);
    const auto valid = request.slot<uint8_t>(2, i);
    const uint64_t counted = listed(masked_, index) ? 0 : 1 + below(key, "length"_site, kSteps);
    for (uint64_t t = 0; t < kSteps; ++t) {
      double sum = 0.3;
      for (uint64_t c = 0; c < kChannels; ++c) {
        double value = 2.0 + normal(key, "x"_site, t * kChannels + c);
        if (request.augment()) value += 0.01 * normal(request.key(i), "jitter"_site, t * kChannels + c);
        if (!x.empty()) x[t * kChannels + c] = static_cast<float>(value);
        sum += (static_cast<double>(c) - 0.5) * value;
      }
      if (!y.empty() && (t > 0 || !forgets_))
        y[t] = static_cast<float>(listed(nan_at_, index) ? std::nan("") : std::tanh(sum));
      if (!valid.empty()) valid[t] = t < counted ? 1 : 0;
    }
  }
  static bool listed(const std::vector<int64_t>& list, uint64_t index) {
    return std::ranges::find(list, static_cast<int64_t>(index)) != list.end();
  }

  uint64_t samples_, group_size_, seed_ = 0;
  std::vector<int64_t> nan_at_, masked_, broken_at_, once_at_;
  mutable std::atomic<bool> read_before_ = false;  // any of once_at_
  mutable std::atomic<bool> slept_ = false;
  bool forgets_;
  std::filesystem::path file_;
};

}  // namespace

HEADROOM_PLUGIN(.id = "trial_source", .version = "1.0", .summary = "Masked sequences for tests of the loop",
                .interfaces = {headroom::sdk::datasource<TrialSource>()});
