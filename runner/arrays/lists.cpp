#include "arrays/arrays.hpp"
#include "arrays/hdf5_array.hpp"
#include "arrays/hdf5_child.hpp"
#include "plugins/service_arguments.hpp"

namespace headroom {

namespace {

hr_status list_dtype(const hr_array* array, DLDataType* out, hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] { out_of(out) = array_of(array).list_value().dtype; });
}

hr_status list_lengths(const hr_host*, const char* path, const char* dataset, hr_list_lengths* out,
                       hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    hr_list_lengths& result = out_of(out);
    const ListLengths found = ask_hdf5({.kind = Hdf5Question::Kind::lists,
                                        .path = text(path, "path"),
                                        .object = absolute_name(text(dataset, "dataset's name"))})
                                  .lists;
    result = {sizeof result, 0, found.seen, found.shortest, found.longest, found.longest_at, found.values};
  });
}

hr_status read_list(hr_array* array, const uint64_t* at, DLDataType dtype, void* data, uint64_t most, uint64_t* length,
                    hr_error* error) HR_NOEXCEPT {
  return sdk::guard(error, [&] {
    const Hdf5Array& lists = array_of(array);
    const size_t axes = lists.layout().shape.size();
    uint64_t& result = out_of(length);
    if ((axes > 0 && at == nullptr) || (most > 0 && data == nullptr))
      throw sdk::Error(HR_INVALID_ARGUMENT, "a list of " + lists.what() + " was asked for without place or room");
    result = lists.read_list({at, axes}, dtype, data, most);
  });
}

}  // namespace

const hr_lists& lists_service() {
  static const hr_lists table{sizeof(hr_lists), 0, list_dtype, list_lengths, read_list};
  return table;
}

}  // namespace headroom
