#include "arrays/strings_service.hpp"

#include "arrays/hdf5_child.hpp"
#include "arrays/hdf5_object.hpp"
#include "plugins/service_arguments.hpp"

namespace headroom {

namespace {

hr_status read_all(const hr_host*, const char* path, const char* dataset, int32_t (*visit)(void*, const char*),
                   void* context, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    const std::vector<std::string> strings = ask_hdf5({.kind = Hdf5Question::Kind::strings,
                                                       .path = text(path, "path"),
                                                       .object = absolute_name(text(dataset, "dataset's name"))})
                                                 .strings;
    for (const std::string& one : strings) {  // the visitor may call the service again
      if (visit(context, one.c_str()) != 0) return;
    }
  });
}

}  // namespace

const hr_strings& strings_service() {
  static const hr_strings table{sizeof(hr_strings), 0, read_all};
  return table;
}

}  // namespace headroom
