/* headroom.lists/1, a service: HDF5 datasets whose elements are lists of numbers, each of its own length (H5T_VLEN, as h5py's vlen_dtype
 * writes them). headroom.arrays/1 opens such a dataset, and says bits 0 for its elements. C++: sdk/lists.hpp.
 */
#ifndef HEADROOM_LISTS_H
#define HEADROOM_LISTS_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the first lists of a dataset, in row-major order. Looking at them means reading their values, so it ends after 2^16 lists or 16 MiB. */
typedef struct hr_list_lengths {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t seen; /* how many lists were looked at */
  uint64_t shortest, longest;
  uint64_t longest_at; /* position of the (first) longest */
  uint64_t values;     /* of all of them together */
} hr_list_lengths;

#define HR_LISTS "headroom.lists/1"
typedef struct hr_lists {
  uint32_t struct_size;
  uint32_t reserved;
  /* [any] The type of one value. HR_INVALID_ARGUMENT: `array` does not hold lists of integers, floats or bool. */
  hr_status (*dtype)(const hr_array* array, DLDataType* out, hr_error* error) HR_NOEXCEPT;
  /* [any] HR_INVALID_ARGUMENT as above; HR_DATA_CORRUPT: a list cannot be read. */
  hr_status (*lengths)(const hr_host* host, const char* path, const char* dataset, hr_list_lengths* out,
                       hr_error* error) HR_NOEXCEPT;
  /* [any] Reads the list at `at`, [ndim]: its first values, at most `most`, are converted to `dtype` and written one after the other to
   * `data`, and `length` is how many it has, which may be more. A list of more than 64 MiB is HR_UNSUPPORTED. */
  hr_status (*read)(hr_array* array, const uint64_t* at, DLDataType dtype, void* data, uint64_t most, uint64_t* length,
                    hr_error* error) HR_NOEXCEPT;
} hr_lists;

#ifdef __cplusplus
}
#endif
#endif
