# find_package(Headroom): headroom::sdk (the public headers) and headroom_add_plugin(), for a plugin outside this tree.

include("${CMAKE_CURRENT_LIST_DIR}/HeadroomTargets.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/HeadroomLibTorch.cmake" OPTIONAL)
# Unless somebody named another one; where the host has a new one since, that.
if(HEADROOM_LIBTORCH_DIR AND EXISTS "${HEADROOM_LIBTORCH_DIR}" AND NOT DEFINED ENV{LIBTORCH_DIR}
   AND (NOT LIBTORCH_DIR OR LIBTORCH_DIR STREQUAL "${HEADROOM_LIBTORCH_DIR_BEFORE}"))
  set(LIBTORCH_DIR "${HEADROOM_LIBTORCH_DIR}" CACHE PATH "Folder with LibTorch's include/ and lib/" FORCE)
  set(HEADROOM_LIBTORCH_DIR_BEFORE "${HEADROOM_LIBTORCH_DIR}" CACHE INTERNAL "what the SDK said")
endif()
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
include("${CMAKE_CURRENT_LIST_DIR}/HeadroomAddPlugin.cmake")
