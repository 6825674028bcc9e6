// Plain gradient descent that does one thing wrong, as its option says. Built three times: with FORGETFUL as
// forgetful_optimizer, whose fault is "remembers" unless told, and with TRUSTFUL as trustful_optimizer, which does
// nothing wrong and relies on the alignment that optimizer.h promises.
#include <cstdlib>
#include <limits>

#include "headroom/optimizer.hpp"

namespace {

using namespace headroom::sdk;

#ifdef FORGETFUL
constexpr const char *own_id = "forgetful_optimizer", *default_fault = "remembers";
#elif defined(TRUSTFUL)
constexpr const char *own_id = "trustful_optimizer", *default_fault = "trusts";
#else
constexpr const char *own_id = "faulty_optimizer", *default_fault = "none";
#endif

class Faulty {
 public:
  static OptionList options() {
    return {opt_string("fault")
                .def(default_fault)
                .help("what goes wrong: none, refuses, name, twice, empty, endless, scratch, throws, exits, memory, "
                      "nan, overrun, scratch_overrun, remembers, trusts"),
            opt_i64("at").def(0).min(0).help("updates of a parameter before that")};
  }

  explicit Faulty(const Options& options) : fault_(options.string("fault")), at_(options.i64("at")) {
    if (fault_ == "refuses") invalid("the fault \"refuses\" does not suit; write another");
  }

  std::vector<State> state(const Trained& parameter) const {
    if (fault_ == "name") return {{"a/b", 1}};
    if (fault_ == "twice") return {{"sum", 1}, {"sum", 2}};
    if (fault_ == "empty") return {{"sum", 0}};
    if (fault_ == "endless") return {{"sum", std::numeric_limits<uint64_t>::max()}};
    return {{"sum", parameter.elements()}};
  }
  uint64_t scratch(const Trained&) const { return fault_ == "scratch" ? uint64_t{1} << 50 : 3; }

  void update(const Update<float>& u) const {
    for (std::size_t i = 0; i < u.values().size(); ++i) {
      u.state(0)[i] += u.gradient()[i];
      u.values()[i] -= static_cast<float>(u.lr()) * u.gradient()[i];
    }
    if (u.updates() >= at_) go_wrong(u);
  }

 private:
  void go_wrong(const Update<float>& u) const {
    if (fault_ == "trusts") require_aligned(u);
    if (fault_ == "remembers") u.values()[0] += static_cast<float>(++steps_);
    if (fault_ == "throws") throw std::runtime_error("it is a bad day");
    if (fault_ == "exits") std::exit(0);
    if (fault_ == "memory") throw std::bad_alloc();
    if (fault_ == "nan") u.values()[1] = std::numeric_limits<float>::quiet_NaN();
    if (fault_ == "overrun") u.state(0).data()[u.state(0).size()] = 1.0f;
    if (fault_ == "scratch_overrun") u.scratch().data()[u.scratch().size()] = 1.0f;
  }

  static void require_aligned(const Update<float>& u) {
    for (const float* buffer : {u.values().data(), u.gradient().data(), u.state(0).data(), u.scratch().data()}) {
      if (reinterpret_cast<std::uintptr_t>(buffer) % 64 != 0) throw std::runtime_error("a buffer is not aligned");
    }
  }

  std::string fault_;
  int64_t at_;
  mutable int64_t steps_ = 0;  // in no checkpoint
};

}  // namespace

HEADROOM_PLUGIN(.id = own_id, .version = "1.0", .summary = "Gradient descent with one fault",
                .interfaces = {headroom::sdk::optimizer<Faulty>()});
