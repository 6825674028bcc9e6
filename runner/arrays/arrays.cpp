#include "arrays/arrays.hpp"

#include "arrays/array_writer_service.hpp"
#include "arrays/arrays_service.hpp"
#include "arrays/chunk_cache.hpp"
#include "arrays/hdf5_file.hpp"
#include "arrays/strings_service.hpp"
#include "plugins/host.hpp"

namespace headroom {

void register_array_services() {
  register_service(HR_ARRAYS, &arrays_service());
  register_service(HR_STRINGS, &strings_service());
  register_service(HR_ARRAY_WRITER, &array_writer_service());
}

void set_chunk_cache_limit(int64_t bytes) {
  const uint64_t limit = bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
  ChunkCache::shared().set_limit(limit);
  const Hdf5Lock lock;
  Hdf5File::limit_chunk_caches(limit);
}

}  // namespace headroom
