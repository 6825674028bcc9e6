/* headroom.readers/1, a service: how many threads of the run read at once. For sources that start child processes to read with: with one
 * for each thread of training and one for each of evaluation, a run would hold twice the memory of those that work.
 */
#ifndef HEADROOM_READERS_H
#define HEADROOM_READERS_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HR_READERS "headroom.readers/1"
typedef struct hr_readers {
  uint32_t struct_size;
  uint32_t reserved;
  /* [any] data.num_workers of the run that `host` belongs to, at least 1; 0 if it belongs to none. A source that calls it promises that it
   * never has more child processes than that, all threads together: a plan then counts no more. */
  uint64_t (*at_once)(const hr_host* host) HR_NOEXCEPT;
} hr_readers;

#ifdef __cplusplus
}
#endif
#endif
