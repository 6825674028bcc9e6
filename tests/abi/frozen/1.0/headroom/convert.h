/* headroom.convert/1, optional: rewrites data of a source's layouts in the form that the source reads fastest.
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
  /* [control] Calls `visit` for every piece of data at `path`, a file or folder, until it returns non-zero. `piece` is the path of a
   * file or folder; the host converts it again only when its size or time changes. `file` is the output's path relative to --out, with
   * "/" between its parts; it is ignored where `path` itself is the only piece. */
  hr_status (*list)(const hr_host* host, const hr_value* options, const char* path,
                    int32_t (*visit)(void* context, const char* piece, const char* file), void* context, hr_error* error) HR_NOEXCEPT;
  /* [control] Writes one piece of `path` to `file`, a temporary name that does not exist yet; the host renames it afterwards. The
   * conversion is lossless. HR_DATA_CORRUPT: this piece cannot be read, or the new form cannot hold its values; others can. */
  hr_status (*write)(const hr_host* host, const hr_value* options, const char* path, const char* piece, const char* file,
                     hr_error* error) HR_NOEXCEPT;
} hr_convert;

#ifdef __cplusplus
}
#endif
#endif
