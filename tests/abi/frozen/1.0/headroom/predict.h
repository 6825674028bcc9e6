/* headroom.predict/1, optional: what a trained model does on a recording, told step by step. It has two sides, of the source and of
 * the model; a plugin leaves those of the other side NULL, and one that is both may fill both. With both sides `headroom predict` asks
 * for a prediction at every step of one recording and puts the predictions together; without, it tells the outputs of the samples.
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

  /* [control] Opens the recording at `path`, a file or folder of the source's layout, and reads it as `source` reads its own: with the
   * same options, fields and statistics. `steps`: how many it has, at least 1. HR_DATA_CORRUPT says what does not suit the source
   * (other joints, another camera) or cannot be read. The recording is the caller's until close(); `source` outlives it. */
  hr_status (*open)(hr_source* source, const char* path, hr_recording** out, uint64_t* steps, hr_error* error) HR_NOEXCEPT;
  void (*close)(hr_recording* recording) HR_NOEXCEPT; /* [control] no read is in flight */
  /* [worker] serial per recording. Fills the slots as hr_datasource.read does, sample i as one that begins at step request->index[i]
   * (< steps). `split` and `flags` are 0, keys mean nothing. Nothing is drawn: a pure function of (content, step). */
  hr_status (*read)(hr_recording* recording, const hr_read* request, hr_error* error) HR_NOEXCEPT;
  /* [any] Writes the shape of the source's field i in this recording to `shape`, [ndim of the field]; read() fills slots of that shape.
   * It differs where the source gives crops and the recording whole pictures. All 0: the recording lacks the field, and its slot is
   * NULL. NULL: the shapes of the source. */
  void (*shape)(const hr_recording* recording, uint32_t field, int64_t* shape) HR_NOEXCEPT;

  /* -- of a model: predict and target_field, both or none -- */

  /* [compute] Outputs from inputs alone: the fields that hold what is to be predicted are NULL in `batch` or are not looked at.
   * call->mode is HR_EVAL. `outputs` has output_count handles, NULL: not wanted. Assigns, detached, those that need no target; always
   * the first one with the role HR_PREDICTION, for the K steps from the sample's own on: [call->count, K, channels], or pictures,
   * [call->count, K, colours, height, width] with values from 0 (black) to 1. */
  hr_status (*predict)(hr_model* model, const hr_call* call, const hr_tensor* batch, const hr_tensor* outputs,
                       hr_error* error) HR_NOEXCEPT;
  /* The field whose first rows the prediction is of: [steps, channels], and where it has channels, predictions are told as measured;
   * or pictures [steps, 1 or 3 colours, height, width], floating-point from 0 to 1 or uint8, of which the prediction has as many. */
  const char* target_field;
  /* Of temporal ensembling: of the predictions made for one step, the i-th oldest (from 0) weighs exp(-ensemble_decay * i). */
  double ensemble_decay;
  /* Of pictures: steps that two consecutive predictions share; there they are averaged. */
  uint64_t overlap;
} hr_predict;

#ifdef __cplusplus
}
#endif
#endif
