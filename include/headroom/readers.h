/* headroom.readers/1, a service: how many child processes a source may read with. With one for each thread that reads, a run would hold
 * those of training beside those of evaluation, and only one of the two works.
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
  /* [any] data.num_workers of the run that `host` belongs to, at least 1; 0 if it belongs to none. For sources only: one that calls it
   * promises to have no more child processes than that while it is open, all threads together, and a plan counts no more. */
  uint64_t (*at_once)(const hr_host* host) HR_NOEXCEPT;
} hr_readers;

#ifdef __cplusplus
}
#endif
#endif
