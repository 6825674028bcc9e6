// How arrays/ holds libhdf5: one lock around every call, handles that close themselves, and its error stack as a
// sentence.
#pragma once

#include <hdf5.h>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "headroom/sdk/error.hpp"

namespace headroom {

// Held around every call into libhdf5; a thread that holds it may take it again. Debian's libhdf5 is thread-safe by a
// lock of its own, but a sequence (select, then read) is not one call. Silences libhdf5's printing on the thread that
// takes it.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// An owned identifier of any libhdf5 kind; negative: none. Takes Hdf5Lock for its end.
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

// What libhdf5 says went wrong first in the last failed call of this thread, on one line.
std::string hdf5_reason();

// The errno that such a reason tells; 0 where no system call failed.
int errno_of(std::string_view hdf5_reason);

// [holding Hdf5Lock] "<failed>: <reason>; ...": of the disk (HR_IO) or of the file (HR_DATA_CORRUPT).
[[noreturn]] void throw_hdf5(const std::string& failed, const std::string& hdf5_reason);

// "float32", "big-endian int16", "string", "compound", ...: what a sentence calls a type.
std::string hdf5_type_name(hid_t type);

inline std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

// "'/emg2pose/timeseries' of '/data/a.hdf5'", for sentences.
inline std::string dataset_of(const std::string& name, const std::string& path) {
  return in_quotes(name) + " of " + in_quotes(path);
}

}  // namespace headroom
