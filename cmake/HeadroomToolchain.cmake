# Compiler settings: C++20 and C11, one layout of outputs, warnings as errors, sanitizers, ccache where present.
# The linker is the compiler's own: mold 1.10 (Debian 12) writes programs that do not start (it begins GNU_RELRO a page early), and
# with -z norelro it does not end for some layouts.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

# bin/headroom, libexec/headroom-train (its target says so), lib/headroom/<plugin>.so, tests/plugins/<plugin>.so
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(HEADROOM_LIBEXEC_DIR "${PROJECT_BINARY_DIR}/libexec")
set(HEADROOM_PLUGIN_DIR "${PROJECT_BINARY_DIR}/lib/headroom")
set(HEADROOM_TEST_PLUGIN_DIR "${PROJECT_BINARY_DIR}/tests/plugins")
set(HEADROOM_PLUGIN_OUTPUT_DIR "${HEADROOM_PLUGIN_DIR}")

# Precompiled headers reach ccache's hits only with this sloppiness; it travels with the launcher, not with the caller.
find_program(HEADROOM_CCACHE ccache)
mark_as_advanced(HEADROOM_CCACHE)
if(HEADROOM_CCACHE)
  foreach(language IN ITEMS C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER OR CMAKE_${language}_COMPILER_LAUNCHER MATCHES "(^|/)ccache$")
      set(CMAKE_${language}_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${HEADROOM_CCACHE})
    endif()
  endforeach()
endif()

# -Wno-restrict: GCC 12 warns of every `"text" + std::string` under optimisation (its bug 105651).
add_library(headroom_warnings INTERFACE)
target_compile_options(
  headroom_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
                              $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
                              $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
if(CMAKE_UNITY_BUILD)
  # Of a class with private parts from an anonymous namespace: no fault in a source file, and a unit includes source files.
  target_compile_options(headroom_warnings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
if(HEADROOM_SANITIZE)
  # The checks that are left out stand at every access and cost about a sixth of a unit's compile time; AddressSanitizer sees most of what they would.
  # Tests (HEADROOM_IS_TEST) leave out three more; what they test keeps those.
  target_compile_options(
    headroom_warnings
    INTERFACE -fsanitize=${HEADROOM_SANITIZE} -fno-sanitize=null,vptr,object-size
              $<$<BOOL:$<TARGET_PROPERTY:HEADROOM_IS_TEST>>:-fno-sanitize=alignment,nonnull-attribute,returns-nonnull-attribute>
              -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(headroom_warnings INTERFACE -fsanitize=${HEADROOM_SANITIZE})
endif()

add_library(headroom_sdk INTERFACE)
add_library(headroom::sdk ALIAS headroom_sdk)
set_target_properties(headroom_sdk PROPERTIES EXPORT_NAME sdk)
target_include_directories(
  headroom_sdk INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:include>")

add_library(headroom_options INTERFACE)
target_include_directories(headroom_options INTERFACE "${PROJECT_SOURCE_DIR}/runner")
target_compile_definitions(headroom_options INTERFACE BOOST_DLL_USE_STD_FS)
target_link_libraries(headroom_options INTERFACE headroom_warnings headroom::sdk)
