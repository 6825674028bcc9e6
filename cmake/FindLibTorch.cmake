# Finds LibTorch 2.9 or newer inside a PyTorch wheel or a LibTorch archive, without PyTorch's own CMake package: that one
# asks for a whole CUDA toolkit as soon as the wheel was built with CUDA.
#
# Looked for in: LIBTORCH_DIR (CMake cache or environment), the torch of the active virtual environment (VIRTUAL_ENV) or
# conda environment (CONDA_PREFIX), and of .venv in the project. The folder meant is the one that holds include/ and lib/.
#
# Defines headroom::torch_cpu, for programs, which load the CUDA libraries when they need them, and for plugins, which take
# the backend of the program that loads them; headroom::torch, with the CUDA libraries where the build has them, for
# plugins that call CUDA themselves; LibTorch_ROOT_FOLDER, LibTorch_VERSION, LibTorch_CUDA.

set(_libtorch_minimum 2.9)

# Candidates as "folder|where it came from"; the first that exists is meant, and a named one that is wrong is an error.
set(_libtorch_candidates "")
if(LIBTORCH_DIR)
  list(APPEND _libtorch_candidates "${LIBTORCH_DIR}|LIBTORCH_DIR")
elseif(DEFINED ENV{LIBTORCH_DIR})
  list(APPEND _libtorch_candidates "$ENV{LIBTORCH_DIR}|LIBTORCH_DIR")
endif()
foreach(_variable IN ITEMS VIRTUAL_ENV CONDA_PREFIX)
  if(DEFINED ENV{${_variable}})
    file(GLOB _found "$ENV{${_variable}}/lib/python3*/site-packages/torch")
    foreach(_folder IN LISTS _found)
      list(APPEND _libtorch_candidates "${_folder}|${_variable}")
    endforeach()
  endif()
endforeach()
file(GLOB _found "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
foreach(_folder IN LISTS _found)
  list(APPEND _libtorch_candidates "${_folder}|.venv")
endforeach()

set(_libtorch_reason "none found in LIBTORCH_DIR, the active virtual or conda environment, or .venv")
foreach(_candidate IN LISTS _libtorch_candidates)
  string(REGEX REPLACE "[|][^|]*$" "" _folder "${_candidate}")
  string(REGEX REPLACE "^.*[|]" "" _origin "${_candidate}")
  if(EXISTS "${_folder}/lib/libtorch_cpu.so" AND EXISTS "${_folder}/include/ATen/ATen.h")
    set(LibTorch_ROOT_FOLDER "${_folder}")
    break()
  elseif(_origin STREQUAL "LIBTORCH_DIR")
    set(_libtorch_reason "LIBTORCH_DIR=${_folder} does not hold lib/libtorch_cpu.so and include/ATen/ATen.h")
    break()
  endif()
endforeach()

# The version: torch/headeronly/version.h since 2.9, else version.py of a wheel, else build-version of an archive.
unset(LibTorch_VERSION)
if(LibTorch_ROOT_FOLDER)
  foreach(_file IN ITEMS include/torch/headeronly/version.h include/torch/version.h
                         include/torch/csrc/api/include/torch/version.h version.py build-version)
    if(NOT LibTorch_VERSION AND EXISTS "${LibTorch_ROOT_FOLDER}/${_file}")
      file(STRINGS "${LibTorch_ROOT_FOLDER}/${_file}" _lines REGEX "TORCH_VERSION |__version__|^[0-9]+[.][0-9]+")
      if("${_lines}" MATCHES "([0-9]+[.][0-9]+[.][0-9]+)")
        set(LibTorch_VERSION "${CMAKE_MATCH_1}")
      endif()
    endif()
  endforeach()
  if(NOT LibTorch_VERSION)
    set(_libtorch_reason "${LibTorch_ROOT_FOLDER} does not say its version")
  elseif(LibTorch_VERSION VERSION_LESS _libtorch_minimum)
    set(_libtorch_reason "${LibTorch_ROOT_FOLDER} is version ${LibTorch_VERSION}")
    unset(LibTorch_VERSION)
  endif()
endif()

if(LibTorch_VERSION)
  include(FindPackageHandleStandardArgs)
  find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_ROOT_FOLDER VERSION_VAR LibTorch_VERSION)
else()
  set(LibTorch_FOUND FALSE)
  if(LibTorch_FIND_REQUIRED)
    message(FATAL_ERROR "Headroom needs LibTorch ${_libtorch_minimum} or newer: ${_libtorch_reason}. Set LIBTORCH_DIR to "
                        "the folder that holds LibTorch's include/ and lib/, or let ./headroom build install it.")
  endif()
endif()

if(LibTorch_FOUND AND NOT TARGET headroom::torch)
  set(LibTorch_CUDA FALSE)
  if(EXISTS "${LibTorch_ROOT_FOLDER}/lib/libtorch_cuda.so")
    set(LibTorch_CUDA TRUE)
  endif()
  foreach(_name IN ITEMS c10 torch_cpu c10_cuda torch_cuda)
    if(EXISTS "${LibTorch_ROOT_FOLDER}/lib/lib${_name}.so")
      add_library(headroom::lib${_name} SHARED IMPORTED)
      set_target_properties(headroom::lib${_name} PROPERTIES IMPORTED_LOCATION
                                                             "${LibTorch_ROOT_FOLDER}/lib/lib${_name}.so")
    endif()
  endforeach()

  # at::parallel_for() is a template: without OpenMP in whoever calls it, it runs on one thread. The threads are those of
  # LibTorch's own library of OpenMP, where its folder has one.
  set(_libtorch_openmp $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fopenmp>)
  file(GLOB _libtorch_gomp "${LibTorch_ROOT_FOLDER}/lib/libgomp*.so*")
  if(_libtorch_gomp)
    list(GET _libtorch_gomp 0 _libtorch_gomp)
  else()
    set(_libtorch_gomp $<$<LINK_LANG_AND_ID:CXX,GNU>:gomp>)
  endif()

  # -idirafter: LibTorch carries an fmt of its own that would win over the system's fmt, which the system's spdlog needs.
  add_library(headroom::torch_cpu INTERFACE IMPORTED)
  set_target_properties(
    headroom::torch_cpu
    PROPERTIES
      INTERFACE_COMPILE_OPTIONS
      "${_libtorch_openmp};SHELL:-idirafter \"${LibTorch_ROOT_FOLDER}/include\";SHELL:-idirafter \"${LibTorch_ROOT_FOLDER}/include/torch/csrc/api/include\""
      INTERFACE_COMPILE_DEFINITIONS "_GLIBCXX_USE_CXX11_ABI=1"
      INTERFACE_LINK_LIBRARIES "headroom::libtorch_cpu;headroom::libc10;${_libtorch_gomp}")

  add_library(headroom::torch INTERFACE IMPORTED)
  set_target_properties(headroom::torch PROPERTIES INTERFACE_LINK_LIBRARIES headroom::torch_cpu)
  if(LibTorch_CUDA)
    # Nothing names a symbol of these two: they register the CUDA backend when they are loaded.
    set_property(
      TARGET headroom::torch
      APPEND
      PROPERTY INTERFACE_LINK_LIBRARIES "-Wl,--push-state,--no-as-needed" headroom::libtorch_cuda headroom::libc10_cuda
               "-Wl,--pop-state")
    # NVIDIA's libraries, which this build asks for, need not be on the machine that links: the loader finds them at the start.
    set_target_properties(headroom::torch_cpu PROPERTIES INTERFACE_LINK_OPTIONS "LINKER:--allow-shlib-undefined")
  endif()
endif()
if(LibTorch_FOUND)
  # Kept, so that a later regeneration, perhaps under another environment, stays with the same build of LibTorch.
  set(LIBTORCH_DIR "${LibTorch_ROOT_FOLDER}" CACHE PATH "Folder with LibTorch's include/ and lib/")
endif()
