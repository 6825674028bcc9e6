# headroom_add_test(NAME <name> [LABEL fast|slow|kernel|tools] SOURCES <file>... [LIBRARIES <target>...]
#                   [DEFINITIONS <NAME=value>...] [TORCH] [ONE_PROCESS])
#
# A GoogleTest executable in tests/ of the build folder; each of its cases is one ctest case under LABEL (fast unless told).
# `./headroom test` picks fast, `--all` every label: slow takes minutes, kernel makes real cgroups and skips where it may not, tools
# needs programs that are not part of the build.
# Left out where HEADROOM_TORCH is off and one of LIBRARIES is of the part that needs LibTorch. TORCH: the sources need it too.
# ONE_PROCESS makes the whole executable one case, for many quick cases behind a slow start (loading LibTorch).
# Sources see HEADROOM_SOURCE_DIR, HEADROOM_BUILD_DIR, HEADROOM_PLUGIN_DIR and HEADROOM_TEST_PLUGIN_DIR as string literals.

include(GoogleTest)

function(headroom_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "ONE_PROCESS;TORCH" "NAME;LABEL" "SOURCES;LIBRARIES;DEFINITIONS")
  if(NOT arg_LABEL)
    set(arg_LABEL fast)
  endif()
  if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS OR NOT arg_LABEL MATCHES "^(fast|slow|kernel|tools)$")
    message(FATAL_ERROR "headroom_add_test(NAME <name> [LABEL fast|slow|kernel|tools] SOURCES <file>... ...): "
                        "NAME ${arg_NAME}, LABEL ${arg_LABEL}; not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()

  if(NOT HEADROOM_TORCH)
    foreach(library IN LISTS arg_LIBRARIES)
      if(library MATCHES "^headroom" AND NOT TARGET ${library})
        return()
      endif()
    endforeach()
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE headroom_options ${arg_LIBRARIES} GTest::gmock_main)
  if(TARGET headroom-hdf5)
    add_dependencies(${arg_NAME} headroom-hdf5)
  endif()
  target_compile_definitions(
    ${arg_NAME}
    PRIVATE HEADROOM_SOURCE_DIR="${PROJECT_SOURCE_DIR}" HEADROOM_BUILD_DIR="${PROJECT_BINARY_DIR}"
            HEADROOM_PLUGIN_DIR="${HEADROOM_PLUGIN_DIR}" HEADROOM_TEST_PLUGIN_DIR="${HEADROOM_TEST_PLUGIN_DIR}"
            ${arg_DEFINITIONS})
  # Tests name small things freely; those of LibTorch, where a unit pays off most, do not.
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests" UNITY_BUILD OFF)
  if(arg_TORCH)
    headroom_use_test_pch(${arg_NAME} TORCH)
  else()
    headroom_use_test_pch(${arg_NAME})
  endif()

  # Time limits only end a hang: a loaded machine and a sanitizer may each cost a factor of ten.
  set(timeout 900)
  # Two tests at once share the cores: OpenMP threads that spin while they wait make both ten times slower.
  set(environment "OMP_WAIT_POLICY=PASSIVE")
  if(NOT arg_LABEL STREQUAL "fast")
    set(timeout 5400)
  endif()
  if(arg_ONE_PROCESS)
    add_test(NAME ${arg_NAME} COMMAND ${arg_NAME})
    set_tests_properties(${arg_NAME} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${timeout} ENVIRONMENT "${environment}")
  else()
    gtest_discover_tests(
      ${arg_NAME}
      TEST_PREFIX "${arg_NAME}."
      DISCOVERY_MODE PRE_TEST
      DISCOVERY_TIMEOUT 300
      PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${timeout} ENVIRONMENT "${environment}")
  endif()
endfunction()

# headroom_test_on_lesser_cpus(<name> [GTEST_FILTER <filter>])
#
# The executable of headroom_add_test(NAME <name>) again, whole or those cases, with the instruction sets of lesser processors: AVX2 under the
# label avx2, the least that LibTorch runs on under the label baseline. `./headroom test --cpu avx2` picks one, `--all` both.
function(headroom_test_on_lesser_cpus name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "GTEST_FILTER" "")
  if(NOT TARGET ${name})
    return()
  endif()
  set(command ${name})
  if(arg_GTEST_FILTER)
    list(APPEND command "--gtest_filter=${arg_GTEST_FILTER}")
  endif()
  set(avx2 ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2)
  set(baseline ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41)
  foreach(cpu IN ITEMS avx2 baseline)
    add_test(NAME ${name}.${cpu} COMMAND ${command})
    set_tests_properties(
      ${name}.${cpu} PROPERTIES LABELS ${cpu} TIMEOUT 1800 ENVIRONMENT
                                "OMP_WAIT_POLICY=PASSIVE;HEADROOM_MAX_CPU_ISA=${cpu};${${cpu}}")
  endforeach()
endfunction()
