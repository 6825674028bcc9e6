# find_package(Headroom): headroom::sdk (the public headers) and headroom_add_plugin(), for a plugin outside this tree.

include("${CMAKE_CURRENT_LIST_DIR}/HeadroomTargets.cmake")
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
include("${CMAKE_CURRENT_LIST_DIR}/HeadroomAddPlugin.cmake")
