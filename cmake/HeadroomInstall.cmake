# cmake --install: the program with its plugins and experiments, and (component sdk) what a plugin outside this tree needs, where
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

install(DIRECTORY "${PROJECT_SOURCE_DIR}/templates" DESTINATION "${CMAKE_INSTALL_DATADIR}/headroom" COMPONENT sdk)
# Datasources in Rust find it by path: headroom new source NAME --lang rust.
install(FILES "${PROJECT_SOURCE_DIR}/sdk/rust/headroom/Cargo.toml" DESTINATION "${CMAKE_INSTALL_DATADIR}/headroom/rust/headroom" COMPONENT sdk)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/sdk/rust/headroom/src" DESTINATION "${CMAKE_INSTALL_DATADIR}/headroom/rust/headroom" COMPONENT sdk)
if(HEADROOM_TORCH)
  # Plugins need the host's own LibTorch, so the SDK says where that is.
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/HeadroomLibTorch.cmake" CONTENT "set(HEADROOM_LIBTORCH_DIR \"@LIBTORCH_DIR@\")\n" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/HeadroomLibTorch.cmake" DESTINATION "${HEADROOM_CMAKE_INSTALL_DIR}" COMPONENT sdk)
endif()

# In the build folder the SDK lies beside the program: headroom new, headroom plugins build.
file(GLOB_RECURSE sdk_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/headroom/*" "${PROJECT_SOURCE_DIR}/templates/*"
     "${PROJECT_SOURCE_DIR}/sdk/rust/headroom/Cargo.toml" "${PROJECT_SOURCE_DIR}/sdk/rust/headroom/src/*"
     "${PROJECT_SOURCE_DIR}/cmake/*.cmake" "${PROJECT_SOURCE_DIR}/cmake/plugin.map" "${PROJECT_BINARY_DIR}/Headroom*.cmake")
add_custom_command(
  OUTPUT "${PROJECT_BINARY_DIR}/sdk.installed"
  COMMAND "${CMAKE_COMMAND}" -E rm -rf sdk
  COMMAND sh -c "'${CMAKE_COMMAND}' --install . --component sdk --prefix sdk > sdk.log"
  COMMAND "${CMAKE_COMMAND}" -E touch "${PROJECT_BINARY_DIR}/sdk.installed"
  DEPENDS ${sdk_files}
  WORKING_DIRECTORY "${PROJECT_BINARY_DIR}"
  COMMENT "Installing the SDK into ${PROJECT_BINARY_DIR}/sdk"
  VERBATIM)
add_custom_target(headroom_sdk_folder ALL DEPENDS "${PROJECT_BINARY_DIR}/sdk.installed")
add_dependencies(headroom_app headroom_sdk_folder)

foreach(target IN LISTS HEADROOM_APP_TARGETS)
  if(TARGET ${target})
    set(folder lib/headroom)
    if(target STREQUAL "headroom")
      set(folder bin)
    elseif(target MATCHES "^headroom-(train|hdf5)$")
      set(folder libexec)
    elseif(target MATCHES "^headroom_(infer|loader|guard)$")
      set(folder lib)
    endif()
    if(HEADROOM_TORCH AND NOT target MATCHES "^headroom(-hdf5|_loader)?$")
      set_target_properties(${target} PROPERTIES INSTALL_RPATH "${LIBTORCH_DIR}/lib") # CMake drops a .venv in the tree
    endif()
    install(TARGETS ${target} RUNTIME DESTINATION ${folder} COMPONENT program LIBRARY DESTINATION ${folder}
                                                                                      COMPONENT program)
  endif()
endforeach()

# The experiments lie beside the program, where it finds them by name.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/experiments" DESTINATION "${CMAKE_INSTALL_DATADIR}/headroom" COMPONENT program)
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/share/headroom")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/experiments" "${PROJECT_BINARY_DIR}/share/headroom/experiments" SYMBOLIC)

# What cmake/wheel/build.py has to know of this build.
if(HEADROOM_TORCH)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/wheel.json" @ONLY CONTENT
       "{\"version\": \"@PROJECT_VERSION@\", \"torch\": \"@LibTorch_VERSION@\", \"cuda\": \"@LibTorch_CUDA@\", \"torch_folder\": \"@LIBTORCH_DIR@\"}\n")
endif()
