# Installs the plugin side into a folder with a space in its name, builds the example plugins against it, and looks at them.

include("${CMAKE_CURRENT_LIST_DIR}/commands.cmake")

function(expect_plugin file needs_torch)
  run(0 nm --dynamic --defined-only --format=posix "${file}")
  string(REGEX MATCHALL "[^\n]+\n" symbols "${output}")
  list(LENGTH symbols count)
  if(NOT count EQUAL 1 OR NOT output MATCHES "^headroom_plugin ")
    message(FATAL_ERROR "${file} exports more than headroom_plugin, or something else:\n${output}")
  endif()
  run(0 readelf --dynamic --wide "${file}")
  if(NOT output MATCHES "NODELETE")
    message(FATAL_ERROR "${file} could be unloaded:\n${output}")
  endif()
  if((output MATCHES "lib(torch|c10)") AND NOT needs_torch)
    message(FATAL_ERROR "${file} needs LibTorch:\n${output}")
  endif()
endfunction()

set(work "${build}/tests/outside of it")
file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}")
run(0 "${CMAKE_COMMAND}" --install "${build}" --component sdk --prefix "${work}/prefix")
foreach(file IN ITEMS Cargo.toml src/lib.rs)
  if(NOT EXISTS "${work}/prefix/share/headroom/rust/headroom/${file}")
    message(FATAL_ERROR "the SDK lacks ${file} of the crate for datasources in Rust")
  endif()
endforeach()
# What is compiled once is not worth a precompiled header.
run(0 "${CMAKE_COMMAND}" -G Ninja -S "${source}/tests/install/outside" -B "${work}/build" -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
    "-DCMAKE_PREFIX_PATH=${work}/prefix" "-DLIBTORCH_DIR=${torch}" "-Dexamples=${source}/examples")
run(0 "${CMAKE_COMMAND}" --build "${work}/build")
expect_plugin("${work}/build/toy_source.so" FALSE)
if(torch)
  expect_plugin("${work}/build/linear_model.so" TRUE)
endif()
file(REMOVE_RECURSE "${work}")
