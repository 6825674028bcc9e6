/* headroom.backward/1 of a model, optional: it runs the backward pass itself. For models whose graph calls code of another language:
 * its exceptions mean nothing to the host. Without it the host calls LibTorch's backward().
 */
#ifndef HEADROOM_BACKWARD_H
#define HEADROOM_BACKWARD_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HR_BACKWARD "headroom.backward/1"
typedef struct hr_backward {
  uint32_t struct_size;
  uint32_t reserved;
  /* [compute] `loss` is the loss_sum of the last step(), or that times a number: 0-dim, with a graph. Adds to the gradients of the
   * parameters, as LibTorch's backward() does, and frees the graph. HR_OUT_OF_MEMORY: the host frees memory and begins the window again. */
  hr_status (*backward)(hr_model* model, hr_tensor loss, hr_error* error) HR_NOEXCEPT;
} hr_backward;

#ifdef __cplusplus
}
#endif
#endif
