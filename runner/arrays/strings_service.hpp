// headroom.strings/1: HDF5 datasets of strings for plugins.
#pragma once

#include "headroom/abi.h"

namespace headroom {

const hr_strings& strings_service();

}  // namespace headroom
