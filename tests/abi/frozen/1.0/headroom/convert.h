/* headroom.convert/1, optional: writes what lies in a source's layouts again, in the form that the source reads best.
 * `headroom data convert PATH --out PATH --source ID` asks for it.
 */
#ifndef HEADROOM_CONVERT_H
#define HEADROOM_CONVERT_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HR_CONVERT "headroom.convert/1"
typedef struct hr_convert {
  uint32_t struct_size;
  uint32_t reserved;
  const hr_options* options; /* keys of --set */
  /* [control] What lies at `path`, a file or folder, piece by piece: `piece` is the path of a file or folder there, which is not
   * converted again until its size or time changes; `file` is what it becomes, relative to --out, with "/" between its parts. Of a
   * path that is one piece, `file` is not looked at. Stops early when `visit` returns non-zero. */
  hr_status (*list)(const hr_host* host, const hr_value* options, const char* path,
                    int32_t (*visit)(void* context, const char* piece, const char* file), void* context, hr_error* error) HR_NOEXCEPT;
  /* [control] Writes one piece of `path` to `file`, which is not there yet; the host gives it its name afterwards. HR_DATA_CORRUPT:
   * this piece cannot be converted, others can. Nothing is lost: a value that the new form cannot hold is refused. */
  hr_status (*write)(const hr_host* host, const hr_value* options, const char* path, const char* piece, const char* file,
                     hr_error* error) HR_NOEXCEPT;
} hr_convert;

#ifdef __cplusplus
}
#endif
#endif
