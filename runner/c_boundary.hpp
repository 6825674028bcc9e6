// C functions of a library for other programs: what they throw becomes a status and a sentence. Used by every such
// library of runner/.
#pragma once

#include <new>
#include <utility>

#include "error.hpp"
#include "headroom/sdk/error.hpp"

namespace headroom {

inline hr_status status_of(Exit exit) {
  switch (exit) {
    case Exit::bad_input:
      return HR_INVALID_ARGUMENT;
    case Exit::plugin:
      return HR_UNSUPPORTED;
    case Exit::data:
      return HR_DATA_CORRUPT;
    case Exit::does_not_fit:
      return HR_OUT_OF_MEMORY;
    case Exit::cannot_write:
      return HR_IO;
    case Exit::resumable:
      return HR_CANCELLED;
    default:
      return HR_INTERNAL;
  }
}

// sdk::guard() that knows Error too. `out_of_memory` is the sentence of a std::bad_alloc. [any]
template <class Body>
hr_status guard_c(hr_error* error, const char* out_of_memory, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return HR_OK;
  } catch (const Error& problem) {
    return sdk::fail(error, status_of(problem.exit_code()), problem.what());
  } catch (const std::bad_alloc&) {
    return sdk::fail(error, HR_OUT_OF_MEMORY, out_of_memory);
  } catch (...) {
    return sdk::translate(error);
  }
}

}  // namespace headroom
