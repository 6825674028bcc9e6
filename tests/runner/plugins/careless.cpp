// A datasource that loads and reads, and will still hurt: an option without help, values that depend on the batch, and
// on keys it says it does not look at, and an element that it leaves unwritten.
#include "headroom/datasource.hpp"

namespace {

using namespace headroom::sdk;

struct Careless {
  static OptionList options() { return {opt_i64("shy").def(1)}; }
  explicit Careless(const Options&) {}
  std::vector<Field> fields() const { return {{.name = "x", .shape = {2}}, {.name = "y", .shape = {3}}}; }
  uint64_t length() const { return 4; }
  bool augments() const { return false; }
  void read(const ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i) {
      request.slot<float>(1, i)[0] = request.slot<float>(1, i)[2] = 1.0f;
      for (float& value : request.slot<float>(0, i))
        value = static_cast<float>(request.count() + (request.augment() ? request.key(i) : 0));
    }
  }
};

}  // namespace

HEADROOM_PLUGIN(.id = "careless", .version = "1.0", .summary = "Not pure", .interfaces = {datasource<Careless>()});
