# headroom_use_torch_pch(target): <torch/torch.h>, precompiled once and shared; it halves the time of a torch unit.
# headroom_use_test_pch(target [TORCH]): <gmock/gmock.h>, with TORCH <torch/torch.h> too. For tests, which are compiled with -O0: a test
# is compiled more often than it runs, and what it tests keeps its own flags. Half the time again.
#
# GCC takes a precompiled header only under the flags it was made with. All users of one share -fPIC (executables too, so no
# -fPIE), the build type's flags and the sanitizers'. -fvisibility may differ: what it governs is decided later.
# Every torch unit pays 4 s for the templates that the header leaves to be instantiated at its end: they go together (CMAKE_UNITY_BUILD).
# Torch does nothing where HEADROOM_TORCH is off.

# headroom_precompile(owner [IS_TEST] LIBRARIES <target>... HEADERS <header>... [OPTIONS <option>...]): unless there is such a target.
function(headroom_precompile owner)
  if(TARGET ${owner})
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "IS_TEST" "" "LIBRARIES;HEADERS;OPTIONS")
  set(source "${PROJECT_BINARY_DIR}/${owner}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// The precompiled header's owner needs one source.\n")
  add_library(${owner} STATIC "${source}")
  target_link_libraries(${owner} PRIVATE ${arg_LIBRARIES})
  target_compile_options(${owner} PRIVATE ${arg_OPTIONS})
  set_target_properties(${owner} PROPERTIES HEADROOM_IS_TEST ${arg_IS_TEST})
  target_precompile_headers(${owner} PRIVATE ${arg_HEADERS})
endfunction()

function(headroom_reuse_pch target owner)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

function(headroom_use_torch_pch target)
  if(NOT TARGET headroom::torch_cpu)
    return()
  endif()
  headroom_precompile(headroom_torch_pch LIBRARIES headroom_warnings headroom::torch_cpu HEADERS <torch/torch.h>)
  headroom_reuse_pch(${target} headroom_torch_pch)
  set_target_properties(${target} PROPERTIES UNITY_BUILD "${CMAKE_UNITY_BUILD}")
endfunction()

function(headroom_use_test_pch target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "")
  target_compile_options(${target} PRIVATE -O0)
  set_target_properties(${target} PROPERTIES HEADROOM_IS_TEST ON)
  if(NOT arg_TORCH)
    # Some tests have it from LibTorch through what they link; GCC wants it to be the same for all.
    set(abi -D_GLIBCXX_USE_CXX11_ABI=1)
    target_compile_options(${target} PRIVATE ${abi})
    headroom_precompile(headroom_test_pch IS_TEST LIBRARIES headroom_warnings GTest::gmock HEADERS <gmock/gmock.h> OPTIONS -O0 ${abi})
    headroom_reuse_pch(${target} headroom_test_pch)
    return()
  endif()
  headroom_precompile(
    headroom_torch_test_pch IS_TEST LIBRARIES headroom_warnings headroom::torch_cpu GTest::gmock HEADERS <torch/torch.h> <gmock/gmock.h>
    OPTIONS -O0)
  headroom_reuse_pch(${target} headroom_torch_test_pch)
  set_target_properties(${target} PROPERTIES UNITY_BUILD "${CMAKE_UNITY_BUILD}")
endfunction()
