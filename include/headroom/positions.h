/* headroom.positions/1 of a source, optional: which rows of a recording its samples show. `headroom predict` then combines the predictions
 * of all samples of a recording into one series. Without it there is one row for each sample.
 */
#ifndef HEADROOM_POSITIONS_H
#define HEADROOM_POSITIONS_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rows of a recording that a field of one sample shows. The recording is the one that the sample's group is, or is a part of. */
typedef struct hr_position {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t first;   /* the field's first row is this row of the recording; below 0: padding before its beginning */
  uint64_t rows;   /* shown, one after the other: the field's elements are this many rows of equal width */
  uint64_t length; /* of the recording, in rows; rows from there on are padding */
} hr_position;

#define HR_POSITIONS "headroom.positions/1"
typedef struct hr_positions {
  uint32_t struct_size;
  uint32_t reserved;
  /* [any] The position of field `field` of sample `index`, read without HR_READ_AUGMENT. Constant while the source is open. `rows` is the
   * same for all samples of a field; within a group `first` does not decrease as `index` rises. HR_NOT_FOUND: this field does not show
   * consecutive rows of a recording. */
  hr_status (*position)(const hr_source* source, uint32_t field, uint32_t split, uint64_t index, hr_position* out,
                        hr_error* error) HR_NOEXCEPT;
} hr_positions;

#ifdef __cplusplus
}
#endif
#endif
