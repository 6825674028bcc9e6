# For tests that are scripts: run() calls a command in the folder `work`, which must end with the exit code `expected`, and leaves what it
# said in `output`; expect() looks for `text` there.

function(run expected)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${work}" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE error)
  list(JOIN ARGN " " command)
  if(NOT result EQUAL expected)
    message(FATAL_ERROR "${command} ended with ${result} instead of ${expected}\n${output}${error}")
  endif()
  set(output "${output}${error}" PARENT_SCOPE)
endfunction()

function(expect text)
  string(FIND "${output}" "${text}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "'${text}' is not in\n${output}")
  endif()
endfunction()
