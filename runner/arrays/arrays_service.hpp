// headroom.arrays/1: HDF5 datasets for plugins, box by box.
#pragma once

#include "headroom/abi.h"

namespace headroom {

const hr_arrays& arrays_service();

}  // namespace headroom
