// sdk/: the parts of the C++ SDK. Plugins include headroom/datasource.hpp or headroom/model.hpp, which include what
// every plugin needs, and single headers of this folder for more. Header-only. Files that need LibTorch say so.
//
// Here: errors of a plugin, and the guard that turns exceptions into statuses at the boundary. All functions are [any].
#pragma once

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "headroom/abi.h"

namespace headroom::sdk {

// What a plugin throws: one sentence (what was found, what is allowed, what to do), and the status that says whose
// problem it is. std::bad_alloc reaches the host as HR_OUT_OF_MEMORY, any other exception as HR_INTERNAL.
class Error : public std::runtime_error {
 public:
  Error(hr_status status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  hr_status status() const noexcept { return status_; }

 private:
  hr_status status_;
};

// An option or a field is wrong: the user can correct it in the experiment file.
[[noreturn]] inline void invalid(const std::string& sentence) { throw Error(HR_INVALID_ARGUMENT, sentence); }

// Fills `error`, if not NULL, with as much of `message` as fits, cut between UTF-8 characters. Returns `status`.
inline hr_status fail(hr_error* error, hr_status status, const char* message) noexcept {
  if (error == nullptr) return status;
  std::size_t length = strnlen(message, sizeof error->message);
  if (length == sizeof error->message) {
    length = sizeof error->message - 1;
    while (length > 0 && (static_cast<unsigned char>(message[length]) & 0xC0u) == 0x80u) --length;
  }
  std::memcpy(error->message, message, length);
  error->message[length] = '\0';
  error->struct_size = sizeof(hr_error);
  error->code = status;
  return status;
}

// Inside a catch block: the exception in flight as status and sentence.
inline hr_status translate(hr_error* error) noexcept {
  try {
    throw;
  } catch (const Error& problem) {
    return fail(error, problem.status() == HR_OK ? HR_INTERNAL : problem.status(), problem.what());
  } catch (const std::bad_alloc&) {
    return fail(error, HR_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& problem) {
    return fail(error, HR_INTERNAL, problem.what());
  } catch (...) {
    return fail(error, HR_INTERNAL, "an exception that is not a std::exception");
  }
}

// Runs the body of a C function and returns its status: HR_OK, or that of the exception it threw.
template <class Body>
hr_status guard(hr_error* error, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return HR_OK;
  } catch (...) {
    return translate(error);
  }
}

// For calls of services: a failed one becomes an Error with the host's sentence and status.
inline void require(hr_status status, const hr_error& error) {
  if (status != HR_OK) throw Error(status, error.message[0] != '\0' ? error.message : "the host gave no reason");
}

inline hr_error no_error() noexcept { return hr_error{sizeof(hr_error), HR_OK, {}}; }

// Fills the caller's `out`, whose struct_size is the room it has, and sets it to what was filled. An older host has
// room for fewer members than this header's struct has.
template <class Struct>
void store(Struct* out, const Struct& value) noexcept {
  const uint32_t filled = out->struct_size < sizeof(Struct) ? out->struct_size : static_cast<uint32_t>(sizeof(Struct));
  std::memcpy(static_cast<void*>(out), &value, filled);
  out->struct_size = filled;
}

// A copy of a struct that the caller passed. Members beyond its struct_size, which an older host lacks, are zero.
template <class Struct>
Struct load(const Struct& given) noexcept {
  Struct copy{};
  copy.struct_size = given.struct_size < sizeof(Struct) ? given.struct_size : static_cast<uint32_t>(sizeof(Struct));
  const uint32_t filled = copy.struct_size;
  std::memcpy(static_cast<void*>(&copy), &given, filled);
  copy.struct_size = filled;
  return copy;
}

// "a, b and c"; "nothing" when empty. For sentences that say what is there.
template <class Names>
std::string listing(const Names& names) {
  std::string text;
  std::size_t left = std::size(names);
  if (left == 0) return "nothing";
  for (const auto& name : names) {
    text += name;
    --left;
    if (left > 0) text += left == 1 ? " and " : ", ";
  }
  return text;
}

}  // namespace headroom::sdk
