# cmake --install: the program with its plugins, and (component sdk) what a plugin outside this tree needs, where
# find_package(Headroom) gives headroom::sdk and headroom_add_plugin().

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(HEADROOM_CMAKE_INSTALL_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/Headroom")

if(EXISTS "${PROJECT_SOURCE_DIR}/include/headroom")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/headroom" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
          COMPONENT sdk)
endif()
install(TARGETS headroom_sdk EXPORT HeadroomTargets COMPONENT sdk)
install(EXPORT HeadroomTargets NAMESPACE headroom:: DESTINATION "${HEADROOM_CMAKE_INSTALL_DIR}" COMPONENT sdk)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/HeadroomConfigVersion.cmake" COMPATIBILITY SameMajorVersion
                                 ARCH_INDEPENDENT)
install(
  FILES "${PROJECT_SOURCE_DIR}/cmake/HeadroomConfig.cmake" "${PROJECT_BINARY_DIR}/HeadroomConfigVersion.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/HeadroomAddPlugin.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindLibTorch.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/plugin.map"
  DESTINATION "${HEADROOM_CMAKE_INSTALL_DIR}"
  COMPONENT sdk)

foreach(target IN ITEMS headroom headroom-train headroom-hdf5 LISTS HEADROOM_PLUGINS)
  if(TARGET ${target})
    set(folder lib/headroom)
    if(target STREQUAL "headroom")
      set(folder bin)
    elseif(target MATCHES "^headroom-(train|hdf5)$")
      set(folder libexec)
    endif()
    if(HEADROOM_TORCH AND NOT target MATCHES "^headroom(-hdf5)?$")
      set_target_properties(${target} PROPERTIES INSTALL_RPATH "${LIBTORCH_DIR}/lib") # CMake drops a .venv in the tree
    endif()
    install(TARGETS ${target} RUNTIME DESTINATION ${folder} LIBRARY DESTINATION ${folder} COMPONENT program)
  endif()
endforeach()
