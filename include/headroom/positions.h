/* headroom.positions/1 of a source, optional: which rows of a recording its samples show. `headroom predict` then puts the predictions of
 * all samples of a recording together into one line. Without it they stay a row a sample.
 */
#ifndef HEADROOM_POSITIONS_H
#define HEADROOM_POSITIONS_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rows that a field of one sample shows, of the recording that the sample's group is of (or is a part of). */
typedef struct hr_position {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t first;   /* the field's first row is this row of the recording; below 0: padding before its beginning */
  uint64_t rows;   /* shown, one after the other: the field's elements are so many rows of equal width */
  uint64_t length; /* of the recording, in rows; what lies from there on is padding */
} hr_position;

#define HR_POSITIONS "headroom.positions/1"
typedef struct hr_positions {
  uint32_t struct_size;
  uint32_t reserved;
  /* [any] Where field `field` of sample `index` lies, read without HR_READ_AUGMENT. Constant while the source is open. `rows` is one for
   * all samples of a field; within a group `first` does not fall as `index` rises. HR_NOT_FOUND: this field does not show rows of a
   * recording one after the other. */
  hr_status (*position)(const hr_source* source, uint32_t field, uint32_t split, uint64_t index, hr_position* out,
                        hr_error* error) HR_NOEXCEPT;
} hr_positions;

#ifdef __cplusplus
}
#endif
#endif
