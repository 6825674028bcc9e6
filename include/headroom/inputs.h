/* headroom.inputs/1, optional: the fields that a model takes, so that it can be tried without data. `headroom plugins check` steps the
 * model on made-up samples of them. A run does not ask for them: its fields are the source's.
 */
#ifndef HEADROOM_INPUTS_H
#define HEADROOM_INPUTS_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HR_ANY_SIZE (-1) /* an extent that the source decides; where several must agree, all of these are equal */

/* A field that a model takes. */
typedef struct hr_input {
  uint32_t struct_size;
  uint32_t reserved;
  const hr_field* field; /* extents of its shape may be HR_ANY_SIZE */
  /* Bounds of its values, both inclusive. Equal: no bounds; integers are then 0 and 1, floating-point numbers standard normal. */
  double min, max;
} hr_input;

#define HR_INPUTS "headroom.inputs/1"
typedef struct hr_inputs {
  uint32_t struct_size;
  uint32_t reserved;
  /* [any] Calls `visit` for every field that a model with these options takes, until it returns non-zero; optional fields may be left out.
   * `options` as in hr_model_torch.create. HR_INVALID_ARGUMENT if the options contradict each other. Where create() or step() returns
   * HR_INVALID_ARGUMENT for fields of this form, the model refuses them; any other error counts as a mistake of the model. */
  hr_status (*list)(const hr_value* options, int32_t (*visit)(void* context, const hr_input* input), void* context,
                    hr_error* error) HR_NOEXCEPT;
} hr_inputs;

#ifdef __cplusplus
}
#endif
#endif
