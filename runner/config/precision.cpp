#include "config/precision.hpp"

#include <algorithm>

#include "error.hpp"

namespace headroom {

void check_precision(const std::string& precision, std::span<const std::string> offered, const std::string& model) {
  if (precision == "fp32" || std::ranges::count(offered, precision) > 0) return;
  std::string usable = "\"fp32\"";
  for (const char* other : {"bf16", "fp16", "fp64"}) {
    if (std::ranges::count(offered, other) > 0) usable += " or \"" + std::string(other) + "\"";
  }
  throw Error(Exit::bad_input, "train.precision",
              "model '" + model + "' does not work in \"" + precision + "\": use " + usable);
}

}  // namespace headroom
