#include "arrays/arrays.hpp"

#include <algorithm>
#include <memory>

#include "arrays/hdf5_array.hpp"
#include "arrays/hdf5_child.hpp"
#include "arrays/hdf5_object.hpp"
#include "arrays/hdf5_writer.hpp"
#include "plugins/host.hpp"
#include "plugins/service_arguments.hpp"

namespace headroom {

namespace {

// --- headroom.arrays/1 ---

hr_status open_array(const hr_host* host, const char* path, const char* dataset, hr_array** out,
                     hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    // Before anything is opened: a NULL here would lose the array.
    hr_array*& array = out_of(out);
    const std::string name = text(dataset, "dataset's name");
    const std::shared_ptr<ArraySession> session = arrays_of(*session_of(host));
    auto opened = std::make_unique<Hdf5Array>(session->file_of(text(path, "path"), name), name, session);
    session->note_opened(opened->plan(), absolute_name(name));
    array = reinterpret_cast<hr_array*>(opened.release());
  });
}

void close_array(hr_array* array) HR_NOEXCEPT { delete reinterpret_cast<Hdf5Array*>(array); }

hr_status info(const hr_array* array, hr_array_info* out, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    const ArrayLayout& layout = array_of(array).layout();
    hr_array_info& result = out_of(out);
    result = {};
    result.struct_size = sizeof result;
    result.ndim = static_cast<int32_t>(layout.shape.size());
    std::copy(layout.shape.begin(), layout.shape.end(), result.shape);
    // Without chunks all extents stay 0, which abi.h reads as contiguous.
    std::copy(layout.chunk.begin(), layout.chunk.end(), result.chunk);
    // abi.h: bits 0 for a compound.
    result.dtype = layout.compound ? DLDataType{0, 0, 1} : layout.element.dtype;
    result.member_count = static_cast<uint32_t>(layout.members.size());
    result.filtered = layout.filtered ? 1 : 0;
    result.element_bytes = layout.element_bytes;
  });
}

hr_status member(const hr_array* array, uint32_t i, hr_array_member* out, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    const auto& members = array_of(array).layout().members;
    if (i >= members.size()) {
      throw sdk::Error(HR_INVALID_ARGUMENT, array_of(array).what() + " has " + std::to_string(members.size()) +
                                                " members; there is no member number " + std::to_string(i));
    }
    hr_array_member& result = out_of(out);
    result = {};
    result.struct_size = sizeof result;
    result.ndim = static_cast<int32_t>(members[i].shape.size());
    std::copy(members[i].shape.begin(), members[i].shape.end(), result.shape);
    // Lives as long as the array, as abi.h promises.
    result.name = members[i].name.c_str();
    result.dtype = members[i].dtype;
    result.offset = members[i].file_offset;
  });
}

bool read(hr_array* array, const uint64_t* start, const uint64_t* count, std::span<const hr_array_target> targets,
          bool check_finite) {
  const Hdf5Array& source = array_of(array);
  const size_t axes = source.layout().shape.size();
  // A scalar has no axes, so its start and count may be NULL.
  if ((axes > 0 && (start == nullptr || count == nullptr)) || (!targets.empty() && targets.data() == nullptr)) {
    throw sdk::Error(HR_INVALID_ARGUMENT,
                     "a box of " + source.what() + " was asked for without start, count or targets");
  }
  return source.read_box({start, axes}, {count, axes}, targets, check_finite);
}

hr_status read_box(hr_array* array, const uint64_t* start, const uint64_t* count, const hr_array_target* targets,
                   uint32_t target_count, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] { read(array, start, count, {targets, target_count}, false); });
}

hr_status read_box_check_finite(hr_array* array, const uint64_t* start, const uint64_t* count,
                                const hr_array_target* targets, uint32_t target_count, int32_t* finite,
                                hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    int32_t& result = out_of(finite);
    // Not finite until the read says otherwise, also where it throws.
    result = 0;
    result = read(array, start, count, {targets, target_count}, true) ? 1 : 0;
  });
}

hr_status list(const hr_host*, const char* path, const char* group, int32_t (*visit)(void*, const char*, int32_t),
               void* context, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    const std::vector<Hdf5Name> names = ask_hdf5({.kind = Hdf5Question::Kind::list,
                                                  .path = text(path, "path"),
                                                  .object = absolute_name(text(group, "group's name"))})
                                            .names;
    for (const Hdf5Name& entry : names) {  // the visitor may call the service again
      if (visit(context, entry.name.c_str(), entry.is_group ? 1 : 0) != 0) return;
    }
  });
}

hr_status attribute(const hr_host*, const char* path, const char* object, const char* name, hr_attribute* out,
                    hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    out_of(out) = ask_hdf5({.kind = Hdf5Question::Kind::attribute,
                            .path = text(path, "path"),
                            .object = absolute_name(text(object, "object's name")),
                            .attribute = text(name, "attribute's name")})
                      .attribute;
  });
}

// --- headroom.strings/1 ---

void visit_strings(const Hdf5Question& question, int32_t (*visit)(void*, const char*), void* context) {
  const Hdf5Answer answer = ask_hdf5(question);
  for (const std::string& one : answer.strings) {  // the visitor may call the service again
    if (visit(context, one.c_str()) != 0) return;
  }
}

hr_status read_strings_of(const hr_host*, const char* path, const char* dataset, int32_t (*visit)(void*, const char*),
                          void* context, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    visit_strings({.kind = Hdf5Question::Kind::strings,
                   .path = text(path, "path"),
                   .object = absolute_name(text(dataset, "dataset's name"))},
                  visit, context);
  });
}

hr_status read_attribute_strings_of(const hr_host*, const char* path, const char* object, const char* name,
                                    int32_t (*visit)(void*, const char*), void* context, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    visit_strings({.kind = Hdf5Question::Kind::strings,
                   .path = text(path, "path"),
                   .object = absolute_name(text(object, "object's name")),
                   .attribute = text(name, "attribute's name")},
                  visit, context);
  });
}

// --- headroom.array_writer/1 ---

Hdf5Writer& writer_of(hr_writer* writer) {
  if (writer == nullptr) throw sdk::Error(HR_INVALID_ARGUMENT, "the writer handle is NULL");
  return *reinterpret_cast<Hdf5Writer*>(writer);
}

hr_status create_file(const hr_host*, const char* path, hr_writer** out, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] { out_of(out) = reinterpret_cast<hr_writer*>(new Hdf5Writer(text(path, "path"))); });
}

hr_status create_dataset(hr_writer* writer, const hr_array_spec* spec, uint32_t* id, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] { out_of(id) = writer_of(writer).dataset(out_of(spec)); });
}

hr_status append_rows(hr_writer* writer, uint32_t id, const void* data, uint64_t rows, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] { writer_of(writer).append(id, data, rows); });
}

hr_status write_attribute(hr_writer* writer, const char* object, const char* name, const hr_attribute* value,
                          hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    writer_of(writer).attribute(text(object, "object's name"), text(name, "attribute's name"), out_of(value));
  });
}

hr_status close_file(hr_writer* writer, int32_t commit, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    // Freed also where commit() throws, as abi.h promises.
    const std::unique_ptr<Hdf5Writer> owned(&writer_of(writer));
    if (commit != 0) owned->commit();
  });
}

}  // namespace

const hr_arrays& arrays_service() {
  static const hr_arrays table{sizeof(hr_arrays),     0,    open_array, close_array, info, member, read_box,
                               read_box_check_finite, list, attribute};
  return table;
}

const hr_strings& strings_service() {
  static const hr_strings table{sizeof(hr_strings), 0, read_strings_of, read_attribute_strings_of};
  return table;
}

const hr_array_writer& array_writer_service() {
  static const hr_array_writer table{sizeof(hr_array_writer), 0,         create_file, create_dataset, append_rows,
                                     write_attribute,         close_file};
  return table;
}

void register_array_services() {
  register_service(HR_ARRAYS, &arrays_service());
  register_service(HR_STRINGS, &strings_service());
  register_service(HR_LISTS, &lists_service());
  register_service(HR_ARRAY_WRITER, &array_writer_service());
}

}  // namespace headroom
