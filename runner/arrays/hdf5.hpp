// What every use of libhdf5 needs: the lock around its calls, identifiers that close themselves, and its error stack as
// a sentence.
#pragma once

#include <hdf5.h>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "headroom/sdk/error.hpp"

namespace headroom {

// The process's lock of libhdf5, held around every call. Recursive. Debian's libhdf5 locks each call itself, but a
// sequence of calls (select a hyperslab, then read it) must not be interleaved. Taking it also switches off libhdf5's
// printing of errors on this thread.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// Owns one identifier of libhdf5, of any kind, and closes it. Takes Hdf5Lock to close. Move-only; false where the
// identifier is negative, as libhdf5 returns it for a failure.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() {
    if (id_ < 0) return;
    const Hdf5Lock lock;
    H5Idec_ref(id_);
  }
  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

// The innermost message of libhdf5's error stack, on one line: what went wrong in this thread's last failed call. The
// next call of libhdf5 clears it.
std::string hdf5_reason();

// The errno in such a message; 0 where it names none.
int errno_of(std::string_view hdf5_reason);

// Throws sdk::Error "<failed>: <reason>; <what to do>": HR_IO where the reason names an errno, else HR_DATA_CORRUPT.
[[noreturn]] void throw_hdf5(const std::string& failed, const std::string& hdf5_reason);

// The name of a type in sentences: "float32", "big-endian int16", "string", "compound". REQUIRES Hdf5Lock.
std::string hdf5_type_name(hid_t type);

inline std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

// A dataset's name in sentences: "'/emg2pose/timeseries' of '/data/a.hdf5'".
inline std::string dataset_of(const std::string& name, const std::string& path) {
  return in_quotes(name) + " of " + in_quotes(path);
}

}  // namespace headroom
