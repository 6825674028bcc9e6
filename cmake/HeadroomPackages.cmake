# Every package the tree links today, each as an imported target (names: top of CMakeLists.txt).

set(THREADS_PREFER_PTHREAD_FLAG OFF)
find_package(Threads REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(Boost 1.74 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libdeflate REQUIRED IMPORTED_TARGET libdeflate)
add_library(libdeflate::libdeflate ALIAS PkgConfig::libdeflate)
if(HEADROOM_TESTS)
  find_package(GTest REQUIRED)
endif()

add_library(headroom_jemalloc INTERFACE)
add_library(headroom::jemalloc ALIAS headroom_jemalloc)
if(HEADROOM_SYSTEM_ALLOCATOR)
  target_compile_definitions(headroom_jemalloc INTERFACE HEADROOM_SYSTEM_ALLOCATOR=1)
else()
  pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET jemalloc>=5)
  target_link_libraries(headroom_jemalloc INTERFACE PkgConfig::jemalloc)
endif()

# A program with the property HEADROOM_HIDES_HDF5 has HDF5 inside, where there is an archive of it, and shows none of its
# functions: the Python of a model may bring h5py, whose own HDF5 would take them for its own.
add_library(headroom_hdf5 INTERFACE)
add_library(headroom::hdf5 ALIAS headroom_hdf5)
get_target_property(_hdf5_library hdf5::hdf5 IMPORTED_LOCATION)
get_filename_component(_hdf5_folder "${_hdf5_library}" DIRECTORY)
find_library(HEADROOM_HDF5_ARCHIVE NAMES libhdf5.a libhdf5_serial.a PATHS "${_hdf5_folder}" NO_DEFAULT_PATH) # of the same build
find_library(HEADROOM_SZIP_LIBRARY NAMES sz)
set(_hides_hdf5 0)
if(HEADROOM_HDF5_ARCHIVE AND HEADROOM_SZIP_LIBRARY)
  set(_hides_hdf5 "$<BOOL:$<TARGET_PROPERTY:HEADROOM_HIDES_HDF5>>")
  get_filename_component(_hdf5_archive "${HEADROOM_HDF5_ARCHIVE}" NAME)
endif()
target_include_directories(headroom_hdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIRS})
target_link_libraries(
  headroom_hdf5
  INTERFACE "$<$<NOT:${_hides_hdf5}>:hdf5::hdf5>"
            "$<${_hides_hdf5}:${HEADROOM_HDF5_ARCHIVE}>"
            "$<${_hides_hdf5}:-Wl,--exclude-libs,${_hdf5_archive}>"
            "$<${_hides_hdf5}:${HEADROOM_SZIP_LIBRARY}>"
            "$<${_hides_hdf5}:ZLIB::ZLIB>"
            "$<${_hides_hdf5}:m>"
            "$<${_hides_hdf5}:${CMAKE_DL_LIBS}>")

if(HEADROOM_TORCH)
  find_package(LibTorch REQUIRED)
endif()
