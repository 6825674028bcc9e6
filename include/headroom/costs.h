/* headroom.cost_options/1 of a source, optional: options that change what reading costs, in time or memory, and never what is read. They
 * are no part of a run's identity: a run may be resumed with other values. Without it all options of the source are, but for paths.
 */
#ifndef HEADROOM_COSTS_H
#define HEADROOM_COSTS_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HR_COST_OPTIONS "headroom.cost_options/1"
typedef struct hr_cost_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* const* names; /* NULL-terminated: keys of hr_datasource.options */
} hr_cost_options;

#ifdef __cplusplus
}
#endif
#endif
