/* headroom.predict/1, optional: predictions of a trained model at every step of one recording. The table has a source's side and a
 * model's side; a plugin fills its own and leaves the other NULL. If both the source and the model of an experiment have theirs,
 * `headroom predict` predicts at every step and combines the predictions; otherwise it writes the outputs of whole samples.
 */
#ifndef HEADROOM_PREDICT_H
#define HEADROOM_PREDICT_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One recording opened beside those of the source. Immutable but for its reads. */
typedef struct hr_recording hr_recording;

#define HR_PREDICT "headroom.predict/1"
typedef struct hr_predict {
  uint32_t struct_size;
  uint32_t reserved;

  /* -- of a source: open, close and read, all or none; shape is optional -- */

  /* [control] Opens the recording at `path`, a file or folder of the source's layout, with the options, fields and statistics of
   * `source`. *steps is its length, at least 1. HR_DATA_CORRUPT if it does not suit the source (other joints, another camera) or cannot
   * be read. The caller owns *out and closes it before `source`. */
  hr_status (*open)(hr_source* source, const char* path, hr_recording** out, uint64_t* steps, hr_error* error) HR_NOEXCEPT;
  void (*close)(hr_recording* recording) HR_NOEXCEPT; /* [control] no read is running */
  /* [worker] one call at a time for the recording. Fills the slots as hr_datasource.read does; sample i begins at step
   * request->index[i] < steps. `split`, `flags` and keys are 0; nothing is drawn: a pure function of (content, step). */
  hr_status (*read)(hr_recording* recording, const hr_read* request, hr_error* error) HR_NOEXCEPT;
  /* [any] Writes the shape of the source's field i in this recording to `shape`, [ndim of the field]; read() fills slots of that shape.
   * It differs where the source gives crops and the recording whole pictures. All 0: the recording lacks the field, and its slot is
   * NULL. NULL: the shapes of the source. */
  void (*shape)(const hr_recording* recording, uint32_t field, int64_t* shape) HR_NOEXCEPT;

  /* -- of a model: predict and target_field, both or none -- */

  /* [compute] Computes outputs from inputs alone: the model must not look at what is to be predicted, which may be NULL in `batch`.
   * call->mode is HR_EVAL. `outputs` has output_count handles, NULL: not wanted. Assigns, detached, the outputs that need no target,
   * and always the first one with the role HR_PREDICTION: K steps from the sample's first on, [call->count, K, channels], or pictures
   * [call->count, K, colours, height, width] with values from 0 (black) to 1. Errors as hr_model_torch.step. */
  hr_status (*predict)(hr_model* model, const hr_call* call, const hr_tensor* batch, const hr_tensor* outputs,
                       hr_error* error) HR_NOEXCEPT;
  /* The field whose first steps are predicted: [steps, channels], floating-point; or pictures [steps, 1 or 3 colours, height, width],
   * floating-point from 0 to 1 or uint8, all of which are predicted. With hr_field.channels, predictions are written in the units that
   * were measured. */
  const char* target_field;
  /* Temporal ensembling: of the predictions for one step, the i-th oldest (from 0) has the weight exp(-ensemble_decay * i). */
  double ensemble_decay;
  /* Of pictures: steps that two consecutive predictions share; there they are averaged. */
  uint64_t overlap;
} hr_predict;

#ifdef __cplusplus
}
#endif
#endif
