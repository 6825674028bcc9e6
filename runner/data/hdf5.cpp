#include "data/hdf5.hpp"

#include <algorithm>
#include <cstdint>

namespace headroom {

namespace {

std::mutex* make_lock() {
  H5dont_atexit();  // after a write that failed, libhdf5 crashes in its own end; our handles close what is open
  return new std::mutex;
}

std::mutex& process_lock() {
  static std::mutex* lock = make_lock();  // outlives every static object that still closes a file
  return *lock;
}

herr_t keep_innermost(unsigned /*depth*/, const H5E_error2_t* error, void* reason) {
  if (error->desc != nullptr && *error->desc != '\0') *static_cast<std::string*>(reason) = error->desc;
  return 0;
}

}  // namespace

Hdf5Lock::Hdf5Lock() : lock_(process_lock()) {
  thread_local bool silent = false;  // libhdf5 keeps the setting per thread
  if (!silent) silent = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
}

std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &reason);
  if (reason.empty()) return "libhdf5 gives no reason";
  std::replace_if(
      reason.begin(), reason.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return reason;
}

std::string hdf5_type_name(hid_t type) {
  const std::string order = H5Tget_order(type) == H5T_ORDER_BE && H5Tget_size(type) > 1 ? "big-endian " : "";
  const std::string bits = std::to_string(8 * uint64_t{H5Tget_size(type)});
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return order + (H5Tget_sign(type) == H5T_SGN_NONE ? "uint" : "int") + bits;
    case H5T_FLOAT:
      return order + "float" + bits;
    case H5T_STRING:
      return "string";
    case H5T_BITFIELD:
      return "bitfield";
    case H5T_OPAQUE:
      return "opaque";
    case H5T_COMPOUND:
      return "compound";
    case H5T_REFERENCE:
      return "reference";
    case H5T_ENUM:
      return "enumeration";
    case H5T_VLEN:
      return "variable-length list";
    case H5T_ARRAY:
      return "array";
    default:
      return "unknown type";
  }
}

}  // namespace headroom
