// Calls into a plugin. Its entries promise not to throw, and abi.h declares them noexcept; a plugin that breaks the
// promise would end the process if the host believed it. Called through a pointer type without noexcept, the exception
// has somewhere to land.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

#include "error.hpp"
#include "headroom/abi.h"
#include "memory/crash_site.hpp"

namespace headroom {

// What is in flight in a catch block, as text.
std::string text_of_exception();

// [any] entry(arguments...). Error(plugin, component) when it throws, naming `what` the entry is.
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

// Logs what a destructor cannot throw.
void report_quietly(const Error& problem);

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

}  // namespace headroom
