// headroom.array_writer/1: HDF5 files that plugins write.
#pragma once

#include "headroom/abi.h"

namespace headroom {

const hr_array_writer& array_writer_service();

}  // namespace headroom
