/* The live header still has the layout of every release: structs only grow at the end. Included as C11 and as C++20. */
#include <stddef.h>

#include "headroom/abi.h"
#include "headroom/backward.h"
#include "headroom/capabilities.h"
#include "headroom/classes.h"
#include "headroom/convert.h"
#include "headroom/costs.h"
#include "headroom/infer.h"
#include "headroom/inputs.h"
#include "headroom/lists.h"
#include "headroom/model_files.h"
#include "headroom/optimizer.h"
#include "headroom/positions.h"
#include "headroom/predict.h"
#include "headroom/readers.h"

#ifdef __cplusplus
#define ABI_ASSERT static_assert
#else
#define ABI_ASSERT _Static_assert
#endif

#define LAYOUT(type, size) ABI_ASSERT(sizeof(type) >= size, #type " is smaller than in its first release");
#define MEMBER(type, member, offset) ABI_ASSERT(offsetof(type, member) == offset, #type "." #member " has moved since its first release");
#include "layout_1_0.inc"
#include "layout_interfaces_1.inc"
#undef LAYOUT
#undef MEMBER

/* Frozen for ever, whatever the major version. */
ABI_ASSERT(sizeof(hr_error) == 512, "the caller owns 512 bytes");
ABI_ASSERT(offsetof(hr_plugin, flags) == 12, "the first 16 bytes never change");
ABI_ASSERT(offsetof(hr_note, flags) == 12, "the first 16 bytes never change");
ABI_ASSERT(sizeof(hr_value) == 24 && sizeof(hr_array_target) == 24, "structs without struct_size never grow");
