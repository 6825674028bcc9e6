# headroom_use_torch_pch(target): <torch/torch.h>, precompiled once and shared; it halves the time of a torch unit.
#
# GCC takes a precompiled header only under the flags it was made with. All torch targets share these: -fPIC (executables
# too, so no -fPIE), the build type's and the sanitizers'. -fvisibility may differ: what it governs is decided later.
# Every unit pays 4 s for the templates that the header leaves to be instantiated at its end: they go together (CMAKE_UNITY_BUILD).
# Does nothing where HEADROOM_TORCH is off.

function(headroom_use_torch_pch target)
  if(NOT TARGET headroom::torch)
    return()
  endif()
  if(NOT TARGET headroom_torch_pch)
    set(source "${PROJECT_BINARY_DIR}/torch_pch.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "// The precompiled header's owner needs one source.\n")
    add_library(headroom_torch_pch STATIC "${source}")
    target_link_libraries(headroom_torch_pch PRIVATE headroom_warnings headroom::torch)
    target_precompile_headers(headroom_torch_pch PRIVATE <torch/torch.h>)
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM headroom_torch_pch)
  set_target_properties(${target} PROPERTIES UNITY_BUILD "${CMAKE_UNITY_BUILD}")
endfunction()
