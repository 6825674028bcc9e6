#include "data/services.hpp"

#include <algorithm>

#include "arrays/array_session.hpp"
#include "arrays/arrays.hpp"
#include "data/cache_session.hpp"
#include "data/files_service.hpp"
#include "plugins/host.hpp"

namespace headroom {

void register_data_services() {
  register_array_services();
  register_service(HR_FILES, &files_service());
  register_service(HR_CACHE, &cache_service());
}

std::shared_ptr<Session> make_session(const DataSection& data) {
  auto arrays = std::make_shared<ArraySession>();
  arrays->map_files(data.memory_map);
  arrays->set_chunk_cache_limit(data.chunk_cache_size_bytes);
  auto cache = std::make_shared<CacheSession>();
  cache->blocks.set_limit(static_cast<uint64_t>(std::max<int64_t>(0, data.cache_size_bytes)));
  return Session::make(std::move(arrays), std::move(cache));
}

}  // namespace headroom
