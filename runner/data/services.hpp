// The tables behind register_data_services(), one source file each, and how they look at what they are given.
#pragma once

#include <string>

#include "headroom/sdk/error.hpp"

namespace headroom {

const hr_arrays& arrays_service();
const hr_strings& strings_service();
const hr_files& files_service();
const hr_array_writer& array_writer_service();
const hr_cache& cache_service();

// What a plugin passed; HR_INVALID_ARGUMENT when it is NULL.
inline std::string text(const char* given, const char* what) {
  if (given == nullptr) throw sdk::Error(HR_INVALID_ARGUMENT, std::string("the ") + what + " is NULL");
  return given;
}

template <class Out>
Out& out_of(Out* out) {
  if (out == nullptr) throw sdk::Error(HR_INVALID_ARGUMENT, "the place for the result is NULL");
  return *out;
}

}  // namespace headroom
