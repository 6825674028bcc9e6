// A datasource of the made-up release 1.1 (CMakeLists.txt): each sample is what the host says of its deadline, which
// only a host of 1.1 can; -1 elsewhere.
#include "headroom/datasource.hpp"

static_assert(HR_ABI_MINOR == 1);

template <>
inline constexpr std::size_t headroom::sdk::size_of_1_0<hr_cancel> = offsetof(hr_cancel, deadline_ms);

namespace headroom {
namespace {

class Source {
 public:
  Source(const sdk::Host& host, const sdk::Options&) : host_(host), cancel_(&host.service<hr_cancel>(HR_CANCEL)) {}

  static std::vector<sdk::Field> fields() { return {{.name = "deadline", .dtype = sdk::i64, .unit = "ms"}}; }
  static uint64_t length() { return 1; }
  void read(const sdk::ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i)
      request.slot<int64_t>(0, i)[0] = HR_HAS(cancel_, deadline_ms) ? cancel_->deadline_ms(host_.native()) : -1;
  }

 private:
  sdk::Host host_;
  const hr_cancel* cancel_;
};

}  // namespace
}  // namespace headroom

HEADROOM_PLUGIN(.id = "source_1_1", .version = "1.1", .summary = "Built with a header of the future",
                .interfaces = {headroom::sdk::datasource<headroom::Source>()});
