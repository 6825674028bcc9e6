# A folder in Rust on a machine without Rust: one sentence says what to install.

file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}/empty")
file(WRITE "${work}/reach/Cargo.toml" "[package]\nname = \"reach\"\n")
execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PATH=${work}/empty" "${headroom}" plugins build "${work}/reach"
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 2 OR NOT output MATCHES "cargo cannot be started .*; Debian has it as cargo")
  message(FATAL_ERROR "ended with ${result}\n${output}")
endif()
file(REMOVE_RECURSE "${work}")
