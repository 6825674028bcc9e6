#include "data/services.hpp"

#include "arrays/arrays.hpp"
#include "data/cache_service.hpp"
#include "data/files_service.hpp"
#include "plugins/host.hpp"

namespace headroom {

void register_data_services() {
  register_array_services();
  register_service(HR_FILES, &files_service());
  register_service(HR_CACHE, &cache_service());
}

}  // namespace headroom
