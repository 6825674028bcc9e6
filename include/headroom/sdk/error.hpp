// sdk/: the parts the C++ SDKs are made of; plugins include headroom/datasource.hpp or headroom/model.hpp. Header-only,
// torch-free. Here: how a plugin says that something went wrong, and the guard that keeps exceptions on its side of the
// boundary.
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

// Throw this from any member a plugin writes: one clear sentence (what was found, what is allowed, what to do) and the
// status that says whose problem it is. Other exceptions reach the host as HR_INTERNAL.
class Error : public std::runtime_error {
 public:
  Error(hr_status status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  hr_status status() const noexcept { return status_; }

 private:
  hr_status status_;
};

// The experiment file can mend it: an option or a field is not what it must be.
[[noreturn]] inline void invalid(const std::string& sentence) { throw Error(HR_INVALID_ARGUMENT, sentence); }

// Fills `error` (NULL: nobody asked) with as much of `message` as fits, cut between characters, never inside one.
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

// Every entry of a table runs its C++ through one of these.
template <class Body>
hr_status guard(hr_error* error, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return HR_OK;
  } catch (...) {
    return translate(error);
  }
}

// The other way: a failed call of a host's service becomes an Error that carries the host's sentence.
inline void require(hr_status status, const hr_error& error) {
  if (status != HR_OK) throw Error(status, error.message[0] != '\0' ? error.message : "the host gave no reason");
}

inline hr_error no_error() noexcept { return hr_error{sizeof(hr_error), HR_OK, {}}; }

// Fills the caller's `out`, whose struct_size says how much room it has: an older host has less than this header's
// struct.
template <class Struct>
void store(Struct* out, const Struct& value) noexcept {
  const uint32_t filled = out->struct_size < sizeof(Struct) ? out->struct_size : static_cast<uint32_t>(sizeof(Struct));
  std::memcpy(static_cast<void*>(out), &value, filled);
  out->struct_size = filled;
}

// The other way: a copy of what the caller passed, whose struct_size says how far it reaches. Members behind that are
// zero.
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
