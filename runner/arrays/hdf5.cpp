#include "arrays/hdf5.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "arrays/filters.hpp"

namespace headroom {

namespace {

// h5py's LZF filter, read only. Its values: revisions of filter and library, bytes of a chunk.
size_t undo_lzf(unsigned flags, size_t value_count, const unsigned* values, size_t bytes, size_t* room, void** data) {
  // By H5Z_func_t a result of 0 is a failure; `data` then stays as it is. Writing is one too: there is no encoder.
  if ((flags & H5Z_FLAG_REVERSE) == 0 || value_count < 3 || values[2] == 0) return 0;
  const size_t size = values[2];
  void* chunk = H5allocate_memory(size, false);
  if (chunk == nullptr) return 0;
  // No exception may pass through libhdf5's C code.
  try {
    inflate_lzf({static_cast<const std::byte*>(*data), bytes}, {static_cast<std::byte*>(chunk), size});
  } catch (const DamagedChunk&) {
    H5free_memory(chunk);
    return 0;
  }
  // By H5Z_func_t the filter replaces the buffer, with memory of libhdf5's.
  H5free_memory(*data);
  *data = chunk;
  *room = size;
  return size;
}

void register_lzf() {
  // 0 and 1: without an encoder, with a decoder.
  const H5Z_class2_t lzf{H5Z_CLASS_T_VERS, lzf_filter_id, 0, 1, "lzf", nullptr, nullptr, undo_lzf};
  H5Zregister(&lzf);
}

std::recursive_mutex* make_lock() {
  // Before any other call of libhdf5, as its manual demands.
  H5dont_atexit();  // libhdf5's exit handler crashes after a failed write; Handles close what is open
  register_lzf();
  return new std::recursive_mutex;
}

std::recursive_mutex& process_lock() {
  static std::recursive_mutex* lock = make_lock();  // outlives every static object that still closes a file
  return *lock;
}

// H5E_WALK_DOWNWARD goes from the API function to the innermost one, so the last message stays.
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

int errno_of(std::string_view hdf5_reason) {
  // As libhdf5's file drivers write it: "errno = 28, error message = ...".
  constexpr std::string_view label = "errno = ";
  const size_t at = hdf5_reason.find(label);
  int code = 0;
  if (at != hdf5_reason.npos)
    std::from_chars(hdf5_reason.data() + at + label.size(), hdf5_reason.data() + hdf5_reason.size(), code);
  return code;
}

void throw_hdf5(const std::string& failed, const std::string& hdf5_reason) {
  if (const int code = errno_of(hdf5_reason); code != 0)
    throw sdk::Error(HR_IO, failed + ": " + std::strerror(code) + "; check the disk");
  throw sdk::Error(HR_DATA_CORRUPT,
                   failed + ": " + hdf5_reason + "; the file is damaged: copy it again or leave it out");
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
