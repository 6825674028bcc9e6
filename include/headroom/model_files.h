/* headroom.model_files/1 of a model, optional: files that a model is made of beside the plugin: code, weights that never change. Their
 * content is part of a run's identity and of its plan, and a run that is resumed says when it has changed.
 */
#ifndef HEADROOM_MODEL_FILES_H
#define HEADROOM_MODEL_FILES_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HR_MODEL_FILES "headroom.model_files/1"
typedef struct hr_model_files {
  uint32_t struct_size;
  uint32_t reserved;
  /* [any] Calls `visit` for every such file until it returns non-zero, in an order that follows from the options and the files alone:
   * `name` is what sentences call it, another one for each and the same wherever the files lie; `path` where it is. Before there is a
   * model; `options` as hr_model_torch.create has them. HR_INVALID_ARGUMENT or HR_IO if a file cannot be read. */
  hr_status (*list)(const hr_host* host, const hr_value* options, int32_t (*visit)(void* context, const char* name, const char* path),
                    void* context, hr_error* error) HR_NOEXCEPT;
} hr_model_files;

#ifdef __cplusplus
}
#endif
#endif
