// A datasource that loads and reads, and will still hurt: an option without help, and values that depend on the batch,
// and on keys it says it does not look at.
#include "headroom/datasource.hpp"

namespace {

using namespace headroom::sdk;

struct Careless {
  static OptionList options() { return {opt_i64("shy").def(1)}; }
  explicit Careless(const Options&) {}
  std::vector<Field> fields() const { return {{.name = "x", .shape = {2}}}; }
  uint64_t length() const { return 4; }
  bool augments() const { return false; }
  void read(const ReadRequest& request) const {
    for (uint64_t i = 0; i < request.count(); ++i) {
      for (float& value : request.slot<float>(0, i))
        value = static_cast<float>(request.count() + (request.augment() ? request.key(i) : 0));
    }
  }
};

}  // namespace

HEADROOM_PLUGIN(.id = "careless", .version = "1.0", .summary = "Not pure", .interfaces = {datasource<Careless>()});
