/* What a host of the made-up release 1.1 does with a datasource. Takes the tables of any 1.x plugin.
 * Each side includes the header it is built with: host_1_1.c that of 1.1, the test that of 1.0. */
#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether prefetch, new in 1.1, is there; then it is called. */
int host_1_1_prefetches(const hr_datasource* api);

/* The precision, new in 1.1, of field 0; -1 when the plugin does not tell. */
double host_1_1_precision(const hr_datasource* api, const hr_source* source);

#ifdef __cplusplus
}
#endif
