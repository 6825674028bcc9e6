#include "plugins/call.hpp"

#include <cstring>
#include <spdlog/spdlog.h>

namespace headroom {

std::string text_of_exception() {
  try {
    throw;
  } catch (const std::exception& problem) {
    return problem.what();
  } catch (...) {
    return "not a std::exception";
  }
}

void report_quietly(const Error& problem) {
  try {
    spdlog::error("{}", problem.what());
  } catch (...) {  // nobody is left to tell
  }
}

namespace {

Exit exit_of(hr_status status, Exit io) {
  switch (status) {
    case HR_INVALID_ARGUMENT:
      return Exit::bad_input;
    case HR_IO:
      return io;
    case HR_NOT_FOUND:
    case HR_DATA_CORRUPT:
      return Exit::data;
    case HR_OUT_OF_MEMORY:
      return Exit::does_not_fit;
    case HR_CANCELLED:
      return Exit::resumable;
    // HR_UNSUPPORTED, HR_INTERNAL and statuses that abi.h does not name, which count as HR_INTERNAL.
    default:
      return Exit::plugin;
  }
}

// These come with a sentence for the user; the others (bugs) need what the host was doing in front of theirs.
bool stands_alone(hr_status status) {
  return status == HR_INVALID_ARGUMENT || status == HR_IO || status == HR_NOT_FOUND || status == HR_DATA_CORRUPT ||
         status == HR_UNSUPPORTED;
}

}  // namespace

std::string message_of(const hr_error& error) {
  // The plugin may have left out the final NUL.
  return {error.message, strnlen(error.message, sizeof error.message)};
}

void check(hr_status status, const hr_error& error, std::string_view component, std::string_view what, Exit io) {
  if (status == HR_OK) return;
  const std::string message = message_of(error);
  const std::string doing(what);
  if (message.empty()) {
    throw Error(exit_of(status, io), component,
                doing + " failed with status " + std::to_string(status) + "; the plugin gave no reason");
  }
  throw Error(exit_of(status, io), component, stands_alone(status) ? message : doing + " failed: " + message);
}

}  // namespace headroom
