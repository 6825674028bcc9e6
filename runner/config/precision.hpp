// What a model must be able to do for train.precision.
#pragma once

#include <span>
#include <string>

namespace headroom {

// Error(bad_input) when `precision` is not "fp32" and not among what the model offers; other words in `offered` are
// passed over.
void check_precision(const std::string& precision, std::span<const std::string> offered, const std::string& model);

}  // namespace headroom
