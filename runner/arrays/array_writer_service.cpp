#include "arrays/array_writer_service.hpp"

#include <memory>

#include "arrays/hdf5_writer.hpp"
#include "plugins/service_arguments.hpp"

namespace headroom {

namespace {

Hdf5Writer& writer_of(hr_writer* writer) {
  if (writer == nullptr) throw sdk::Error(HR_INVALID_ARGUMENT, "the writer handle is NULL");
  return *reinterpret_cast<Hdf5Writer*>(writer);
}

hr_status create(const hr_host*, const char* path, hr_writer** out, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] { out_of(out) = reinterpret_cast<hr_writer*>(new Hdf5Writer(text(path, "path"))); });
}

hr_status dataset(hr_writer* writer, const hr_array_spec* spec, uint32_t* id, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] { out_of(id) = writer_of(writer).dataset(out_of(spec)); });
}

hr_status append(hr_writer* writer, uint32_t id, const void* data, uint64_t rows, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] { writer_of(writer).append(id, data, rows); });
}

hr_status attribute(hr_writer* writer, const char* object, const char* name, const hr_attribute* value,
                    hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    writer_of(writer).attribute(text(object, "object's name"), text(name, "attribute's name"), out_of(value));
  });
}

hr_status close(hr_writer* writer, int32_t commit, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    const std::unique_ptr<Hdf5Writer> owned(&writer_of(writer));
    if (commit != 0) owned->commit();
  });
}

}  // namespace

const hr_array_writer& array_writer_service() {
  static const hr_array_writer table{sizeof(hr_array_writer), 0, create, dataset, append, attribute, close};
  return table;
}

}  // namespace headroom
