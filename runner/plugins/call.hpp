// Calls into a plugin. abi.h declares every function noexcept, so a plugin that throws anyway would end the process.
// The host therefore calls through a pointer type without noexcept and catches the exception, which it reports as a bug
// of the plugin.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

#include "error.hpp"
#include "headroom/abi.h"
#include "memory/crash_site.hpp"

namespace headroom {

// The current exception as text. Call it inside a catch block.
std::string text_of_exception();

// [any] Returns entry(arguments...). If it throws: Error(plugin, component), with `what`, the name of the function.
template <class Result, class... Parameters>
Result call(std::string_view component, std::string_view what, Result (*entry)(Parameters...),
            std::type_identity_t<Parameters>... arguments) {
  const PluginCall here(component, what);
  try {
    return entry(arguments...);
  } catch (...) {
    throw Error(Exit::plugin, component,
                "the plugin threw an exception out of " + std::string(what) + "() (" + text_of_exception() +
                    "): nothing may be thrown across the boundary; this is a bug of the plugin");
  }
}

// Logs an error in a place that must not throw.
void report_quietly(const Error& problem);

// call() for destructors: an exception is logged.
template <class Result, class... Parameters>
void call_quietly(std::string_view component, std::string_view what, Result (*entry)(Parameters...),
                  std::type_identity_t<Parameters>... arguments) noexcept {
  try {
    call(component, what, entry, arguments...);
  } catch (const Error& problem) {
    report_quietly(problem);
  } catch (...) {  // no memory left for the sentence
  }
}

// An empty error for a plugin to write to.
inline hr_error no_error() { return {sizeof(hr_error), HR_OK, {}}; }

// The message that the plugin wrote; "" for none.
std::string message_of(const hr_error& error);

// Turns a failed call into an exception: Error(component) with the plugin's sentence. `what` says what the host was
// doing. INVALID_ARGUMENT -> bad_input; IO -> `io`; DATA_CORRUPT, NOT_FOUND -> data; OUT_OF_MEMORY -> does_not_fit;
// CANCELLED -> resumable; others -> plugin.
void check(hr_status status, const hr_error& error, std::string_view component, std::string_view what,
           Exit io = Exit::data);

}  // namespace headroom
