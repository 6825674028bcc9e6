/* headroom.capabilities/1 of a model, optional: what one model can do, where its options decide that. Without it every model of the
 * plugin has hr_model_torch.capabilities.
 */
#ifndef HEADROOM_CAPABILITIES_H
#define HEADROOM_CAPABILITIES_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HR_CAPABILITIES "headroom.capabilities/1"
typedef struct hr_capabilities {
  uint32_t struct_size;
  uint32_t reserved;
  /* [control] HR_COUPLES_SAMPLES, HR_MODEL_*, HR_RNG_*; constant. The run goes by these; what is asked before there is a model goes by
   * hr_model_torch.capabilities. */
  uint32_t (*of_model)(const hr_model* model) HR_NOEXCEPT;
} hr_capabilities;

#ifdef __cplusplus
}
#endif
#endif
