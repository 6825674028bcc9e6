/* libheadroom_infer: a trained model in your own program, without a trainer and without the data that it was trained on.
 *
 *   hr_error error = {.struct_size = sizeof error};
 *   hr_infer* model = NULL;
 *   if (hr_infer_open("runs/pose/20261121-063011-3fa2", NULL, &model, &error) != HR_OK) { puts(error.message); return 1; }
 *   const DLTensor* outputs = NULL;
 *   if (hr_infer_run(model, inputs, &outputs, &error) != HR_OK) { puts(error.message); return 1; }
 *   ... outputs[0].data ...
 *   hr_infer_close(model);
 *
 * Inputs are arrays of one or more samples in measured units, as the run's datasource delivers them before standardisation.
 * A prediction of a field is in the measured units of that field; other outputs are as the model returns them. examples/infer is
 * a complete program; infer.hpp is the interface for C++.
 *
 * Rules, besides those of abi.h:
 *  - Errors: every function that takes an hr_error returns HR_OK or another status and then fills it, if that is not NULL, with one
 *    sentence. After an error the model stays usable, results are unspecified. Nothing throws. NULL for a model, a place for a result
 *    or all inputs is HR_INVALID_ARGUMENT; a model of NULL has no inputs and no outputs.
 *  - Threads: a model is opened, run and closed in one thread. Several models, also of one plugin, may be used at the same time, each
 *    in its own thread. Functions that describe a model, such as hr_infer_input(), may be called from any thread.
 *  - Memory: descriptions live as long as the model, outputs only until its next run. All samples of a run go through the model at
 *    once: the caller chooses a number that fits.
 *  - The process must use the LibTorch that this library and the model's plugin were built with.
 */
#ifndef HEADROOM_INFER_H
#define HEADROOM_INFER_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hr_infer hr_infer;

/* How a model is opened. Each member may be 0 or NULL, with the meaning given. */
typedef struct hr_infer_settings {
  uint32_t struct_size;
  int32_t threads;                 /* threads that LibTorch computes with in the calling thread; 0: unchanged */
  const char* checkpoint;          /* of a run's folder: best, last, or a checkpoint's folder; NULL: best */
  const char* device;              /* cpu, cuda, cuda:1; NULL: cpu */
  const char* const* plugin_dirs;  /* NULL-terminated: folders to search first for the model's plugin; NULL: only
                                      $HEADROOM_PLUGIN_PATH, headroom/ next to this library and ../lib/headroom of the program */
} hr_infer_settings;

/* One output. The first axis of the arrays that a run returns is the samples. */
typedef struct hr_infer_output {
  uint32_t struct_size;
  hr_role role;
  const char* name;
  const char* unit;     /* NULL: none, or that of `field` */
  const hr_field* field; /* the input whose channels and units the values have, along the last axis; NULL: none */
  int32_t given;        /* 0: it needs the target of the prediction, and is NULL in every run */
  int32_t ndim;
  DLDataType dtype;
  int64_t shape[HR_MAX_DIMS]; /* of one sample, for inputs of the shapes of hr_infer_input() */
} hr_infer_output;

/* Opens a run's folder, or a file of `headroom export --format safetensors`. Loads the model's plugin, which runs with your rights and is
 * never unloaded, and runs the model once. `settings` may be NULL. The caller owns *out. HR_INVALID_ARGUMENT: the run or checkpoint does
 * not exist, or does not match the plugin; HR_UNSUPPORTED: the plugin is missing or has another build; HR_OUT_OF_MEMORY. */
hr_status hr_infer_open(const char* path, const hr_infer_settings* settings, hr_infer** out, hr_error* error) HR_NOEXCEPT;
void hr_infer_close(hr_infer* model) HR_NOEXCEPT; /* does nothing for NULL */

/* The inputs: fields as in abi.h, `shape` of one sample, measured values. NULL after the last. */
uint32_t hr_infer_input_count(const hr_infer* model) HR_NOEXCEPT;
const hr_field* hr_infer_input(const hr_infer* model, uint32_t i) HR_NOEXCEPT;
/* Whether a run uses input i. 0: it is what the model predicts, and may be left out. */
int32_t hr_infer_needs(const hr_infer* model, uint32_t i) HR_NOEXCEPT;

uint32_t hr_infer_output_count(const hr_infer* model) HR_NOEXCEPT;
const hr_infer_output* hr_infer_output_at(const hr_infer* model, uint32_t i) HR_NOEXCEPT; /* NULL after the last */

/* Runs the model. `inputs` has hr_infer_input_count() arrays in host memory: the dtype of their field, [samples, shape...], row-major
 * (strides NULL) or with strides; data NULL: not given. They are not written to. *outputs then has hr_infer_output_count() arrays,
 * row-major; data NULL where none is given. A model with headroom.predict/1 also takes other extents than the field's, such as whole
 * pictures where it was trained on crops. HR_INVALID_ARGUMENT: an input is missing or does not match; HR_OUT_OF_MEMORY: run fewer samples
 * at once. */
hr_status hr_infer_run(hr_infer* model, const DLTensor* inputs, const DLTensor** outputs, hr_error* error) HR_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
