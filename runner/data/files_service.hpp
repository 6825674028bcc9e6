// headroom.files/1: plain files and folders for plugins.
#pragma once

#include "headroom/abi.h"

namespace headroom {

const hr_files& files_service();

}  // namespace headroom
