# What a new author does: headroom new, build, check, train; then a mistake, and one that the compiler finds.

include("${CMAKE_CURRENT_LIST_DIR}/commands.cmake")

# The model beside it takes long to compile, and is the same as that of `wrist`.
function(build_without_model name)
  file(READ "${work}/${name}/CMakeLists.txt" lists)
  string(REGEX REPLACE "[^\n]*${name}_model[^\n]*\n" "" lists "${lists}")
  file(WRITE "${work}/${name}/CMakeLists.txt" "${lists}")
  run(0 "${headroom}" plugins build ${name})
  expect("built ${work}/${name}/build/release/${name}.so")
  run(0 "${ctest}" --test-dir ${name}/build/release --output-on-failure)
endfunction()

file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}")
run(2 "${headroom}" new model Wrist)
expect("cannot be a plugin's id")
run(2 "${headroom}" new source move --lang rust)
expect("'move' is a keyword of Rust")
run(2 "${headroom}" new optimizer lion)
expect("'lion' is one of Headroom's own optimizers")
run(0 "${headroom}" new model wrist)
expect("wrist: model wrist.cpp, datasource wrist_data.cpp")
run(2 "${headroom}" new model wrist)
expect("is there already")

run(0 "${headroom}" plugins build wrist)
expect("built ${work}/wrist/build/release/wrist.so")
expect("built ${work}/wrist/build/release/wrist_data.so")
run(0 "${headroom}" run wrist/wrist.toml --plugin-dir wrist/build/release --set train.epochs=4)
expect("finished: ")
run(0 "${ctest}" --test-dir wrist/build/release --output-on-failure)
file(READ "${work}/wrist/headroom.schema.json" schema)
if(NOT schema MATCHES "width of the hidden layer")
  message(FATAL_ERROR "the schema does not know the plugin's options")
endif()

# An optimizer.
run(0 "${headroom}" new optimizer stride)
expect("stride: optimizer stride.cpp, model stride_model.cpp, datasource stride_data.cpp, experiment stride.toml")
build_without_model(stride)
run(0 "${headroom}" run stride/stride.toml --plugin-dir stride/build/release --plugin-dir wrist/build/release --set model.plugin=wrist
    --set train.epochs=4)
expect("finished: ")
file(READ "${work}/stride/headroom.schema.json" schema)
if(NOT schema MATCHES "decay of the mean of gradients")
  message(FATAL_ERROR "the schema does not know the optimizer's options")
endif()
# What it remembers beside its buffers would be lost when a run is resumed: the check finds it.
file(READ "${work}/stride/stride.cpp" rule)
string(REPLACE "const T sign" "mean_ += static_cast<double>(g[i]);\n      m[i] += static_cast<T>(mean_);\n      const T sign" forgets "${rule}")
string(REPLACE "double momentum_;" "double momentum_;\n  mutable double mean_ = 0;" forgets "${forgets}")
file(WRITE "${work}/stride/stride.cpp" "${forgets}")
run(0 "${headroom}" plugins build stride)
run(3 "${headroom}" plugins check stride/build/release/stride.so)
expect("FAIL  optimizer: goes on bit-equal from its buffers: ")

# A mean in place of a sum: the check finds it.
file(READ "${work}/wrist/wrist.cpp" code)
string(REPLACE ".square().sum()" ".square().mean()" mistake "${code}")
file(WRITE "${work}/wrist/wrist.cpp" "${mistake}")
run(0 "${headroom}" plugins build wrist)
run(3 "${headroom}" plugins check wrist/build/release/wrist.so --with wrist/wrist.toml)
expect("FAIL  model: whole or in pieces, the gradient is the same: [wrist] ")
run(3 "${headroom}" plugins check wrist/build/release/wrist.so)
expect("FAIL  model: whole or in pieces, the gradient is the same: [wrist] ")

# A datasource in C.
run(0 "${headroom}" new source reach --lang c)
expect("reach: model reach_model.cpp, datasource reach.c, experiment reach.toml")
build_without_model(reach)

file(WRITE "${work}/wrist/wrist.cpp" "${code}\nnonsense\n")
run(3 "${headroom}" plugins build wrist)
expect("does not build, see above")
run(2 "${headroom}" plugins build .)
expect("holds neither CMakeLists.txt nor Cargo.toml")
file(REMOVE_RECURSE "${work}")
