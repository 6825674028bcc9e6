/* headroom.optimizer/1: an optimizer, which experiments select with train.optimizer.name = "<plugin id>". It updates parameters from their
 * gradients. All of its state is in buffers of the host, which the memory ledger, plans and checkpoints include. It needs no LibTorch. The
 * host calls `needs` for every trained parameter and makes the buffers. Then it calls `step` once for each window, after the gradients were
 * divided by the window's weight and clipped, with the rate of the schedule and the factors of groups and the model for each parameter.
 */
#ifndef HEADROOM_OPTIMIZER_H
#define HEADROOM_OPTIMIZER_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hr_rule hr_rule; /* an optimizer with its options */

/* A parameter that is trained. */
typedef struct hr_trained {
  uint32_t struct_size;
  int32_t ndim;
  const char* name;
  const char* group;    /* as the model declares it; NULL: none */
  DLDataType dtype;     /* float32; float64 where HR_OPTIMIZER_FP64 is set */
  uint32_t reserved;
  const int64_t* shape; /* [ndim] */
  uint64_t elements;    /* their product; at least 1 */
} hr_trained;

/* Elements of the parameter's dtype in host memory, contiguous, 64-byte aligned. */
typedef struct hr_buffer {
  void* data;
  uint64_t elements;
} hr_buffer;

/* One parameter in one step. */
typedef struct hr_update {
  uint32_t struct_size;
  uint32_t reserved;
  const hr_trained* parameter;
  double lr;              /* of this step: the schedule's, times the factors of the parameter's group and the model */
  double weight_decay;    /* of this parameter */
  int64_t updates;        /* earlier updates of this parameter; 0 at the first */
  hr_buffer values;       /* to be changed in place */
  hr_buffer gradient;     /* finite; may be overwritten */
  const hr_buffer* state; /* [state_count] in the order of `needs`; all zero where `updates` is 0 */
  uint64_t state_count;
  hr_buffer scratch;      /* at least as large as `needs` asked; content undefined; shared by all parameters */
} hr_update;

typedef struct hr_optimizer_step {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t step;             /* optimizer steps of the run before this one */
  uint64_t count;
  const hr_update* updates; /* [count] in the same order in every step, without frozen parameters and those without a gradient */
} hr_optimizer_step;

#define HR_OPTIMIZER_FP64 1u /* train.precision = "fp64" works */

#define HR_OPTIMIZER "headroom.optimizer/1"
typedef struct hr_optimizer {
  uint32_t struct_size;
  uint32_t flags;            /* HR_OPTIMIZER_* */
  const hr_options* options; /* keys of [train.optimizer_options] */
  /* [control] HR_INVALID_ARGUMENT if the options contradict each other. The caller owns *out. */
  hr_status (*create)(const hr_host* host, const hr_value* options, hr_rule** out, hr_error* error) HR_NOEXCEPT;
  void (*destroy)(hr_rule* rule) HR_NOEXCEPT; /* [control] */
  /* [control] Describes the buffers for this parameter: calls `state` for every buffer that lives from step to step, with its name
   * ([a-z][a-z0-9_]*, unique) and its number of elements, and sets *scratch to the elements that one update needs temporarily. A pure
   * function of the options and the parameter. HR_INVALID_ARGUMENT if it cannot train such a parameter. */
  hr_status (*needs)(const hr_rule* rule, const hr_trained* parameter,
                     int32_t (*state)(void* context, const char* name, uint64_t elements), void* context, uint64_t* scratch,
                     hr_error* error) HR_NOEXCEPT;
  /* [compute] Updates every parameter. A pure function of the options and of what `step` points to: other state would be in no checkpoint,
   * and a resumed run would differ. Allocates nothing, since half a step cannot be undone. Any error ends the run, and so do values that
   * are not finite afterwards and writes past the end of a buffer. */
  hr_status (*step)(hr_rule* rule, const hr_optimizer_step* step, hr_error* error) HR_NOEXCEPT;
} hr_optimizer;

#ifdef __cplusplus
}
#endif
#endif
