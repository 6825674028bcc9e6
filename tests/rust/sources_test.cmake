# The crate's own tests, then what an author does with it. In a copy of the part of the tree that is needed: cargo writes beside what it
# builds.

find_program(cargo cargo)
if(NOT cargo)
  message("skipped: there is no cargo to build Rust with; Debian has it as cargo")
  return()
endif()

include("${CMAKE_CURRENT_LIST_DIR}/../install/commands.cmake")

set(headroom "${build}/bin/headroom")
file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}")
foreach(folder IN ITEMS sdk/rust/headroom/src sdk/rust/headroom/tests examples/rust_source/src tests/rust/probe/src)
  file(COPY "${source}/${folder}" DESTINATION "${work}/${folder}/..")
endforeach()
foreach(file IN ITEMS sdk/rust/headroom/Cargo.toml examples/rust_source/Cargo.toml examples/rust_source/build.rs
                      tests/rust/probe/Cargo.toml tests/rust/probe/build.rs tests/abi/layout_1_0.inc)
  configure_file("${source}/${file}" "${work}/${file}" COPYONLY)
endforeach()

run(0 "${cargo}" test --offline --quiet --manifest-path sdk/rust/headroom/Cargo.toml --target-dir target)

run(0 "${headroom}" plugins build examples/rust_source)
expect("built ${work}/examples/rust_source/build/release/rust_source.so")
run(0 "${headroom}" plugins build tests/rust/probe)
run(0 "${headroom}" plugins check examples/rust_source/build/release/rust_source.so)
expect("ok    exports headroom_plugin and nothing else")
expect("ok    is never unloaded (-z nodelete)")
expect("ok    note and header say the same")
expect("ok    datasource: a sample is the same alone and among others")

run(0 "${headroom}" new source reach --lang rust)
expect("reach: model reach_model.cpp, datasource src/lib.rs, experiment reach.toml")
file(REMOVE "${work}/reach/CMakeLists.txt") # of the model: tests/install builds one
run(0 "${headroom}" plugins build reach)
expect("built ${work}/reach/build/release/reach.so")
run(0 "${headroom}" plugins check reach/build/release/reach.so)
expect("ok    datasource: a field is the same whether others are wanted")
run(2 "${headroom}" new source headroom --lang rust)
expect("is the crate that plugins use")

file(READ "${work}/reach/Cargo.toml" manifest)
string(REPLACE "crate-type = [\"cdylib\"]" "" plain "${manifest}")
file(WRITE "${work}/reach/Cargo.toml" "${plain}")
run(3 "${headroom}" plugins build reach)
expect("makes no plugin: it needs crate-type")
file(WRITE "${work}/reach/Cargo.toml" "${manifest}\n[profile.release]\npanic = \"abort\"\n")
run(3 "${headroom}" plugins build reach)
expect("a panic must not end the host's process")
file(WRITE "${work}/reach/Cargo.toml" "${manifest}")

if(NOT torch)
  return()
endif()
function(write_experiment source options)
  file(WRITE "${work}/${source}.toml" "[experiment]
name = \"${source}\"

[model]
plugin = \"linear_model\"

[data]
source = \"${source}\"
options = { ${options} }

[train]
epochs = 2
batch_size = 16
optimizer = { name = \"adamw\", lr = 0.05 }
")
endfunction()
set(words --no-plan --plugin-dir examples/rust_source/build/release --plugin-dir tests/rust/probe/build/release --plugin-dir
    "${build}/examples" --out runs)
write_experiment(rust_source "samples = 48")
run(0 "${headroom}" run rust_source.toml ${words})
expect("finished: 6 steps")

# A bug of the plugin, with the panic's own message.
write_experiment(rust_probe "panics = \"read\"")
run(3 "${headroom}" run rust_probe.toml ${words})
expect("reading samples failed: the plugin panicked at src/lib.rs:")
expect(": sample 5 is not to be had")
write_experiment(rust_probe "panics = \"open\"")
run(3 "${headroom}" run rust_probe.toml ${words})
expect("opening the data source failed: the plugin panicked at src/lib.rs:")
write_experiment(rust_probe "refuses = true")
run(2 "${headroom}" run rust_probe.toml ${words})
expect("[rust_probe] refuses must be false, not true")
