# For tests that are CMake scripts: run() and expect(), in the folder ${work}.

# Ends the test where the command does not end with `expected`. ${output} is what it wrote.
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
