# headroom_add_plugin(NAME <name> SOURCES <file>... [TORCH] [LIBRARIES <target>...])
#
# A plugin: <name>.so with one exported symbol, headroom_plugin, that is never unloaded. TORCH links LibTorch; without it
# the plugin needs no part of it. A plugin that calls CUDA itself adds LIBRARIES headroom::torch.
# Works inside Headroom's tree and, after find_package(Headroom), outside it. Inside, the plugin lands in lib/headroom of the
# build folder (below tests/: in tests/plugins), and one with TORCH only where HEADROOM_TORCH is on; outside, in the current
# binary folder.

# One version script for all: CMAKE_CURRENT_LIST_DIR is lost inside the function.
set(HEADROOM_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")

function(headroom_add_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "TORCH" "NAME" "SOURCES;LIBRARIES")
  if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "headroom_add_plugin(NAME <name> SOURCES <file>... [TORCH] [LIBRARIES <target>...]): "
                        "NAME and SOURCES are required; not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()

  if(arg_TORCH AND DEFINED HEADROOM_TORCH AND NOT HEADROOM_TORCH)
    return()
  endif()
  add_library(${arg_NAME} MODULE ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE headroom::sdk ${arg_LIBRARIES})
  set_target_properties(
    ${arg_NAME}
    PROPERTIES PREFIX ""
               POSITION_INDEPENDENT_CODE ON
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               LINK_DEPENDS "${HEADROOM_PLUGIN_MAP}")
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("CXX" IN_LIST languages)
    target_compile_features(${arg_NAME} PRIVATE cxx_std_20)
  endif()
  target_compile_options(${arg_NAME} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  target_link_options(${arg_NAME} PRIVATE "LINKER:-z,nodelete" "LINKER:--version-script=${HEADROOM_PLUGIN_MAP}")
  if(arg_TORCH)
    if(NOT TARGET headroom::torch_cpu)
      find_package(LibTorch REQUIRED)
    endif()
    target_link_libraries(${arg_NAME} PRIVATE headroom::torch_cpu)
  endif()

  # LibTorch's header is compiled once, so that an edit waits for its own source alone.
  if(arg_TORCH AND NOT TARGET headroom_warnings)
    target_precompile_headers(${arg_NAME} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:<torch/torch.h$<ANGLE-R>>")
  endif()

  if(TARGET headroom_warnings)
    target_link_libraries(${arg_NAME} PRIVATE headroom_warnings)
    set_target_properties(${arg_NAME} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${HEADROOM_PLUGIN_OUTPUT_DIR}")
    if(HEADROOM_PLUGIN_OUTPUT_DIR STREQUAL HEADROOM_PLUGIN_DIR)
      set_property(GLOBAL APPEND PROPERTY HEADROOM_PLUGINS ${arg_NAME}) # what headroom_app builds and install takes
    endif()
    if(arg_TORCH)
      headroom_use_torch_pch(${arg_NAME})
    endif()
  endif()
endfunction()
