/* The live header still has the layout of every release: structs only grow at the end. Included as C11 and as C++20. */
#include <stddef.h>

#include "headroom/abi.h"
#include "headroom/convert.h"
#include "headroom/predict.h"

#ifdef __cplusplus
#define ABI_ASSERT static_assert
#else
#define ABI_ASSERT _Static_assert
#endif

#define LAYOUT(type, size) ABI_ASSERT(sizeof(type) >= size, #type " is smaller than in 1.0");
#define MEMBER(type, member, offset) ABI_ASSERT(offsetof(type, member) == offset, #type "." #member " has moved since 1.0");
#include "layout_1_0.inc"
#undef LAYOUT
#undef MEMBER

/* Frozen for ever, whatever the major version. */
ABI_ASSERT(sizeof(hr_error) == 512, "the caller owns 512 bytes");
ABI_ASSERT(offsetof(hr_plugin, flags) == 12, "the first 16 bytes never change");
ABI_ASSERT(offsetof(hr_note, flags) == 12, "the first 16 bytes never change");
ABI_ASSERT(sizeof(hr_value) == 24 && sizeof(hr_array_target) == 24, "structs without struct_size never grow");
