/* headroom.classes/1 of a model and headroom.class_names/1 of a source, both optional: which outputs hold class scores, and the names of
 * the classes. The host then measures accuracy, precision, recall, F1 and the confusion matrix, and reports how balanced the classes are.
 * Without them an output is measured as numbers (MSE, MAE, RMSE, R2).
 */
#ifndef HEADROOM_CLASSES_H
#define HEADROOM_CLASSES_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HR_MOST_CLASSES 4096u /* the host holds a few matrices of classes x classes integers */

#define HR_CLASSES_COUNTED 1u /* the model wants to know how often each class occurs: hr_classes.balance */

/* An output with the role HR_PREDICTION that holds class scores: floating-point, [samples, ..., classes]. The predicted class is the one
 * with the highest score; of equal scores, the first. Its target is the output with the role HR_TARGET in the same place of their order; it
 * holds integers [samples, ...]. A target outside of 0 to count - 1 (such as -100) does not count; neither do elements that a mask
 * excludes. A mask broadcasts over the target's trailing axes. */
typedef struct hr_class_scores {
  uint32_t struct_size;
  uint32_t flags;           /* HR_CLASSES_* */
  uint64_t count;           /* classes: 2 to HR_MOST_CLASSES */
  const char* field;        /* the source's integer field that the target is made of, value by value; NULL: none */
  const char* const* names; /* [count]; NULL: the source's names of `field`, else numbers */
} hr_class_scores;

#define HR_CLASSES "headroom.classes/1"
typedef struct hr_classes {
  uint32_t struct_size;
  uint32_t reserved;
  /* [control] What output `i` holds, constant; HR_NOT_FOUND: no class scores. What it points to lives as long as the model. */
  hr_status (*scores)(const hr_model* model, uint32_t i, hr_class_scores* out, hr_error* error) HR_NOEXCEPT;
  /* [control] Optional. Called once, before the first step of a new run, for every output with HR_CLASSES_COUNTED: counts[c], of [count],
   * values of `field` in the training split are class c. A resumed run and an evaluation do not call it: store what the model computes from
   * the counts in an HR_BUFFER, which checkpoints hold. */
  hr_status (*balance)(hr_model* model, uint32_t i, const uint64_t* counts, uint64_t count, hr_error* error) HR_NOEXCEPT;
} hr_classes;

#define HR_CLASS_NAMES "headroom.class_names/1"
typedef struct hr_class_names {
  uint32_t struct_size;
  uint32_t reserved;
  /* [any] The name of value `value` of an integer field; values count from 0. HR_NOT_FOUND after the last one, and for a field without
   * classes. The name lives as long as the source. */
  hr_status (*name)(const hr_source* source, uint32_t field, uint64_t value, const char** out, hr_error* error) HR_NOEXCEPT;
} hr_class_names;

#ifdef __cplusplus
}
#endif
#endif
