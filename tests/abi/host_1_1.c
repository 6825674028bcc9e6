#include "host_1_1.h"

_Static_assert(HR_ABI_MINOR == 1, "built with the made-up header");

int host_1_1_prefetches(const hr_datasource* api) {
  if (!HR_HAS(api, prefetch) || api->prefetch == NULL) return 0;
  api->prefetch(NULL);
  return 1;
}

/* What lies in the caller's memory before the plugin fills it must never be taken for an answer: 666. */
double host_1_1_precision(const hr_datasource* api, const hr_source* source) {
  hr_field field = {.struct_size = sizeof field, .precision = 666.0};
  if (api->field(source, 0, &field, NULL) != HR_OK) return -2.0;
  return HR_HAS(&field, precision) ? field.precision : -1.0;
}
