// Checks of the arguments that a plugin passes to a service; they throw sdk::Error.
#pragma once

#include <string>

#include "headroom/sdk/error.hpp"

namespace headroom {

// The string that a plugin passed. HR_INVALID_ARGUMENT when it is NULL.
inline std::string text(const char* given, const char* what) {
  if (given == nullptr) throw sdk::Error(HR_INVALID_ARGUMENT, std::string("the ") + what + " is NULL");
  return given;
}

template <class Out>
Out& out_of(Out* out) {
  if (out == nullptr) throw sdk::Error(HR_INVALID_ARGUMENT, "the place for the result is NULL");
  return *out;
}

}  // namespace headroom
