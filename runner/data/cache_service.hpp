// headroom.cache/1: plugins' blocks in the sample cache (cache_session.hpp).
#pragma once

#include "headroom/abi.h"

namespace headroom {

const hr_cache& cache_service();

}  // namespace headroom
