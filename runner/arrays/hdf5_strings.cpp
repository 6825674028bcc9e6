#include "arrays/hdf5_strings.hpp"

#include <cstring>

#include "arrays/hdf5_object.hpp"
#include "arrays/hdf5_plan.hpp"

namespace headroom {

namespace {

constexpr uint64_t most_strings = 1u << 20;
constexpr uint64_t most_bytes = 64u << 20;

[[noreturn]] void throw_unreadable(const std::string& what) {
  throw sdk::Error(HR_DATA_CORRUPT,
                   what + " cannot be read: " + hdf5_reason() + "; copy the file again or leave it out");
}

std::vector<std::string> read_fixed(hid_t dataset, hid_t type, uint64_t count, const std::string& what) {
  const size_t bytes = H5Tget_size(type);
  if (count * bytes > most_bytes)
    throw sdk::Error(HR_UNSUPPORTED, what + " holds " + std::to_string(count * bytes) + " bytes of strings; at most " +
                                         std::to_string(most_bytes >> 20) + " MiB are read");
  std::string text(count * bytes, '\0');
  if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0) throw_unreadable(what);
  const bool spaces = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
  std::vector<std::string> strings;
  for (uint64_t i = 0; i < count; ++i) {
    const char* first = text.data() + i * bytes;
    std::string& one = strings.emplace_back(first, strnlen(first, bytes));
    if (spaces) one.erase(one.find_last_not_of(' ') + 1);
  }
  return strings;
}

std::vector<std::string> read_variable(hid_t dataset, hid_t type, hid_t space, uint64_t count,
                                       const std::string& what) {
  std::vector<char*> texts(count, nullptr);
  const Handle memory(H5Tcopy(H5T_C_S1));
  H5Tset_size(memory.get(), H5T_VARIABLE);
  H5Tset_cset(memory.get(), H5Tget_cset(type));
  if (H5Dread(dataset, memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data()) < 0) throw_unreadable(what);
  std::vector<std::string> strings;
  for (const char* one : texts) strings.emplace_back(one != nullptr ? one : "");
  H5Dvlen_reclaim(memory.get(), space, H5P_DEFAULT, texts.data());
  return strings;
}

}  // namespace

std::vector<std::string> read_strings(hid_t file, const std::string& dataset, const std::string& path) {
  const std::string what = dataset_of(dataset, path);
  if (find_object(file, dataset, path) != Hdf5Kind::dataset)
    throw sdk::Error(HR_INVALID_ARGUMENT, what + " is not a dataset");
  const Handle opened(H5Dopen2(file, dataset.c_str(), H5P_DEFAULT));
  const Handle type(opened ? H5Dget_type(opened.get()) : H5I_INVALID_HID);
  const Handle space(opened ? H5Dget_space(opened.get()) : H5I_INVALID_HID);
  if (!type || !space) throw_unreadable(what);
  if (H5Tget_class(type.get()) != H5T_STRING) {
    throw sdk::Error(HR_INVALID_ARGUMENT,
                     what + " holds " + hdf5_type_name(type.get()) + " values; strings are needed");
  }
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (count < 0) throw_unreadable(what);
  const auto strings = static_cast<uint64_t>(count);
  if (strings > most_strings)
    throw sdk::Error(HR_UNSUPPORTED, what + " holds " + std::to_string(strings) + " strings; at most " +
                                         std::to_string(most_strings) + " are read");
  if (strings == 0) return {};
  return H5Tis_variable_str(type.get()) > 0 ? read_variable(opened.get(), type.get(), space.get(), strings, what)
                                            : read_fixed(opened.get(), type.get(), strings, what);
}

}  // namespace headroom
