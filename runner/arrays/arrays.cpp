#include "arrays/arrays.hpp"

#include "arrays/array_writer_service.hpp"
#include "arrays/arrays_service.hpp"
#include "arrays/strings_service.hpp"
#include "plugins/host.hpp"

namespace headroom {

void register_array_services() {
  register_service(HR_ARRAYS, &arrays_service());
  register_service(HR_STRINGS, &strings_service());
  register_service(HR_ARRAY_WRITER, &array_writer_service());
}

}  // namespace headroom
