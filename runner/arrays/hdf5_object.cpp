#include "arrays/hdf5_object.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

namespace headroom {

namespace {

constexpr size_t most_named = 8;             // of the things a sentence lists
constexpr size_t longest_string = 1u << 20;  // bytes of an attribute

// "groups 'a', 'b' and 'c'"; "" for no names.
std::string named(const std::vector<std::string>& names, const std::string& one) {
  if (names.empty()) return "";
  std::vector<std::string> shown(names.begin(), names.begin() + static_cast<long>(std::min(names.size(), most_named)));
  for (std::string& name : shown) name = in_quotes(name);
  if (names.size() > most_named) shown.push_back(std::to_string(names.size() - most_named) + " more");
  return one + (names.size() == 1 ? " " : "s ") + sdk::listing(shown);
}

// Called by H5Literate_by_name() for every link. It returns 0 always: a negative value would end the listing.
herr_t take_name(hid_t group, const char* name, const H5L_info_t* /*info*/, void* names) {
  H5O_info_t object;
  if (H5Oget_info_by_name2(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
    return 0;  // a link that leads nowhere
  // A named type holds no values and no names, so it is left out.
  if (object.type == H5O_TYPE_GROUP || object.type == H5O_TYPE_DATASET) {
    static_cast<std::vector<Hdf5Name>*>(names)->push_back({name, object.type == H5O_TYPE_GROUP});
  }
  return 0;
}

herr_t take_attribute_name(hid_t /*object*/, const char* name, const H5A_info_t* /*info*/, void* names) {
  static_cast<std::vector<std::string>*>(names)->push_back(name);
  return 0;
}

Hdf5Kind kind_of(hid_t file, const std::string& object, const std::string& path) {
  H5O_info_t info;
  if (H5Oget_info_by_name2(file, object.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
    throw_hdf5(in_quotes(object) + " of " + in_quotes(path) + " cannot be opened", hdf5_reason());
  }
  if (info.type == H5O_TYPE_GROUP) return Hdf5Kind::group;
  return info.type == H5O_TYPE_DATASET ? Hdf5Kind::dataset : Hdf5Kind::other;
}

// Cuts at the start of a character: a cut in the middle would leave invalid UTF-8.
void copy_text(hr_attribute& out, std::string_view text) {
  size_t length = std::min(text.size(), sizeof out.string - 1);
  while (length > 0 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0u) == 0x80u) --length;
  std::memcpy(out.string, text.data(), length);
  out.string[length] = '\0';
}

void read_text(hid_t attribute, hid_t type, hr_attribute& out, const std::string& what) {
  out.type = HR_STRING;
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    // libhdf5 does not convert strings between ASCII and UTF-8, so memory takes the file's character set.
    const Handle memory(H5Tcopy(H5T_C_S1));
    H5Tset_size(memory.get(), H5T_VARIABLE);
    H5Tset_cset(memory.get(), H5Tget_cset(type));
    if (H5Aread(attribute, memory.get(), &text) < 0) throw_hdf5(what + " cannot be read", hdf5_reason());
    // A string of variable length that was never written reads as NULL.
    copy_text(out, text != nullptr ? text : "");
    H5free_memory(text);
    return;
  }
  // A header may declare any length, and the buffer is made before a byte is read.
  const size_t bytes = H5Tget_size(type);
  if (bytes > longest_string)
    throw sdk::Error(HR_UNSUPPORTED,
                     what + " is a string of " + std::to_string(bytes) + " bytes; at most 1 MiB is read");
  std::string text(bytes, '\0');
  if (H5Aread(attribute, type, text.data()) < 0) throw_hdf5(what + " cannot be read", hdf5_reason());
  // H5T_STR_NULLTERM and H5T_STR_NULLPAD end at the first NUL; H5T_STR_SPACEPAD (Fortran) pads with spaces.
  text.resize(strnlen(text.data(), bytes));
  if (H5Tget_strpad(type) == H5T_STR_SPACEPAD) text.erase(text.find_last_not_of(' ') + 1);
  copy_text(out, text);
}

// Also an enumeration over integers, as h5py writes numpy's bool.
bool is_integer(hid_t type) {
  if (H5Tget_class(type) == H5T_INTEGER) return true;
  if (H5Tget_class(type) != H5T_ENUM) return false;
  const Handle base(H5Tget_super(type));
  return H5Tget_class(base.get()) == H5T_INTEGER;
}

// For H5Pset_type_conv_cb(): libhdf5 would take the nearest integer that fits, without a word.
H5T_conv_ret_t refuse_to_clip(H5T_conv_except_t problem, hid_t /*from*/, hid_t /*to*/, void* /*value*/,
                              void* /*result*/, void* clipped) {
  if (problem != H5T_CONV_EXCEPT_RANGE_HI && problem != H5T_CONV_EXCEPT_RANGE_LOW) return H5T_CONV_UNHANDLED;
  *static_cast<bool*>(clipped) = true;
  return H5T_CONV_ABORT;
}

// Converts the bytes of the file's own type here: libhdf5 converts no enumeration to its integers, and H5Aread() takes
// no function that refuses to clip.
herr_t read_integer(hid_t attribute, hid_t type, int64_t& out, const std::string& what) {
  // H5Tconvert() works in place, in a buffer that must hold the larger of both types.
  int64_t raw = 0;
  if (H5Tget_size(type) > sizeof raw)
    throw sdk::Error(HR_UNSUPPORTED, what + " is " + hdf5_type_name(type) + "; integers of 1 to 8 bytes can be read");
  const Handle base(H5Tget_class(type) == H5T_ENUM ? H5Tget_super(type) : H5Tcopy(type));
  const Handle transfer(H5Pcreate(H5P_DATASET_XFER));
  bool clipped = false;
  H5Pset_type_conv_cb(transfer.get(), refuse_to_clip, &clipped);
  if (H5Aread(attribute, type, &raw) < 0) return -1;
  const herr_t status = H5Tconvert(base.get(), H5T_NATIVE_INT64, 1, &raw, nullptr, transfer.get());
  if (clipped) throw sdk::Error(HR_UNSUPPORTED, what + " is an integer above 2^63 - 1, which cannot be read");
  out = raw;
  return status;
}

void read_number(hid_t attribute, hid_t type, hr_attribute& out, const std::string& what) {
  herr_t status = 0;
  if (is_integer(type)) {
    out.type = HR_I64;
    status = read_integer(attribute, type, out.i64, what);
    // abi.h promises f64 for integers too.
    out.f64 = static_cast<double>(out.i64);
  } else {
    out.type = HR_F64;
    status = H5Aread(attribute, H5T_NATIVE_DOUBLE, &out.f64);
  }
  if (status < 0) throw_hdf5(what + " cannot be read", hdf5_reason());
}

}  // namespace

std::string absolute_name(const std::string& object) {
  std::string name = "/";
  for (const char c : object) {
    if (c != '/' || name.back() != '/') name += c;
  }
  if (name.size() > 1 && name.back() == '/') name.pop_back();
  return name;
}

std::string file_name(hid_t object) {
  // The length comes without the NUL, which the second call writes too.
  const ssize_t length = H5Fget_name(object, nullptr, 0);
  std::string name(length > 0 ? static_cast<size_t>(length) + 1 : 1, '\0');
  H5Fget_name(object, name.data(), name.size());
  name.pop_back();
  return name;
}

std::vector<Hdf5Name> list_group(hid_t file, const std::string& group) {
  std::vector<Hdf5Name> names;
  // In whatever order is fastest for libhdf5: the names are sorted below.
  hsize_t at = 0;
  if (H5Literate_by_name(file, group.c_str(), H5_INDEX_NAME, H5_ITER_NATIVE, &at, take_name, &names, H5P_DEFAULT) < 0) {
    const std::string reason = hdf5_reason();
    throw_hdf5("group " + in_quotes(group) + " of " + in_quotes(file_name(file)) + " cannot be listed", reason);
  }
  std::sort(names.begin(), names.end(), [](const Hdf5Name& a, const Hdf5Name& b) { return a.name < b.name; });
  return names;
}

std::string contents(hid_t file, const std::string& group) {
  std::vector<std::string> groups, datasets;
  for (const Hdf5Name& entry : list_group(file, group)) (entry.is_group ? groups : datasets).push_back(entry.name);
  const std::string both = !groups.empty() && !datasets.empty() ? " and " : "";
  const std::string text = named(groups, "group") + both + named(datasets, "dataset");
  return text.empty() ? "nothing" : text;
}

// H5Lexists() fails where a group on the way is missing, so the path is checked link by link.
Hdf5Kind find_object(hid_t file, const std::string& object, const std::string& path) {
  std::string group = "/";
  for (size_t at = 1; at < object.size();) {
    const size_t end = std::min(object.find('/', at), object.size());
    const std::string next = object.substr(0, end);
    if (kind_of(file, group, path) != Hdf5Kind::group) {
      throw sdk::Error(HR_NOT_FOUND,
                       in_quotes(path) + " has no " + in_quotes(object) + ": " + in_quotes(group) + " is not a group");
    }
    if (H5Lexists(file, next.c_str(), H5P_DEFAULT) <= 0) {
      throw sdk::Error(HR_NOT_FOUND, in_quotes(path) + " has no " + in_quotes(object) + "; group " + in_quotes(group) +
                                         " holds " + contents(file, group));
    }
    group = next;
    at = end + 1;
  }
  return kind_of(file, object, path);
}

namespace {

struct OpenAttribute {
  std::string what;  // for sentences
  Handle attribute, type, space;
};

OpenAttribute open_attribute(hid_t file, const std::string& object, const std::string& name, const std::string& path) {
  // First, so that a missing object is not reported as a missing attribute.
  find_object(file, object, path);
  const std::string place = in_quotes(object) + " of " + in_quotes(path);
  if (H5Aexists_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT) <= 0) {
    std::vector<std::string> names;
    hsize_t at = 0;
    H5Aiterate_by_name(file, object.c_str(), H5_INDEX_NAME, H5_ITER_INC, &at, take_attribute_name, &names, H5P_DEFAULT);
    const std::string there = names.empty() ? "no attributes" : named(names, "attribute");
    throw sdk::Error(HR_NOT_FOUND, place + " has no attribute " + in_quotes(name) + "; it has " + there);
  }
  OpenAttribute open{"attribute " + in_quotes(name) + " of " + place,
                     Handle(H5Aopen_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT)),
                     {},
                     {}};
  if (open.attribute) {
    open.type = Handle(H5Aget_type(open.attribute.get()));
    open.space = Handle(H5Aget_space(open.attribute.get()));
  }
  if (!open.type || !open.space) throw_hdf5(open.what + " cannot be read", hdf5_reason());
  return open;
}

}  // namespace

hr_attribute read_attribute(hid_t file, const std::string& object, const std::string& name, const std::string& path) {
  const auto [what, attribute, type, space] = open_attribute(file, object, name, path);
  // One element is a scalar, or an array of length 1, as some programs write single values.
  if (H5Sget_simple_extent_npoints(space.get()) != 1) {
    throw sdk::Error(HR_UNSUPPORTED, what + " is not a single value; one number or one string can be read");
  }
  hr_attribute out{};
  out.struct_size = sizeof out;
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind == H5T_STRING) {
    read_text(attribute.get(), type.get(), out, what);
  } else if (kind == H5T_FLOAT || is_integer(type.get())) {
    read_number(attribute.get(), type.get(), out, what);
  } else {
    throw sdk::Error(HR_UNSUPPORTED,
                     what + " is of type " + hdf5_type_name(type.get()) + "; one number or one string can be read");
  }
  return out;
}

namespace {

// headroom.strings/1 promises the first limit (abi.h). The second is for the bytes of all strings together.
constexpr uint64_t most_strings = 1u << 20;
constexpr uint64_t most_bytes = 64u << 20;

[[noreturn]] void throw_unreadable(const std::string& what) {
  throw sdk::Error(HR_DATA_CORRUPT,
                   what + " cannot be read: " + hdf5_reason() + "; copy the file again or leave it out");
}

// Where strings stand: a dataset, or an attribute.
struct Strings {
  std::string what;  // for sentences
  hid_t type, space;
  std::function<herr_t(hid_t memory_type, void* values)> read;
};

void require_few_bytes(const Strings& from, uint64_t bytes) {
  if (bytes > most_bytes)
    throw sdk::Error(HR_UNSUPPORTED, from.what + " holds " + std::to_string(bytes) + " bytes of strings; at most " +
                                         std::to_string(most_bytes >> 20) + " MiB are read");
}

std::vector<std::string> read_fixed(const Strings& from, uint64_t count) {
  const size_t bytes = H5Tget_size(from.type);
  // This cannot overflow: the format keeps a type's size in 4 bytes.
  require_few_bytes(from, count * bytes);
  std::string text(count * bytes, '\0');
  if (from.read(from.type, text.data()) < 0) throw_unreadable(from.what);
  const bool spaces = H5Tget_strpad(from.type) == H5T_STR_SPACEPAD;
  std::vector<std::string> strings;
  for (uint64_t i = 0; i < count; ++i) {
    const char* first = text.data() + i * bytes;
    std::string& one = strings.emplace_back(first, strnlen(first, bytes));
    if (spaces) one.erase(one.find_last_not_of(' ') + 1);
  }
  return strings;
}

std::vector<std::string> read_variable(const Strings& from, uint64_t count) {
  std::vector<char*> texts(count, nullptr);
  const Handle memory(H5Tcopy(H5T_C_S1));
  H5Tset_size(memory.get(), H5T_VARIABLE);
  H5Tset_cset(memory.get(), H5Tget_cset(from.type));
  if (from.read(memory.get(), texts.data()) < 0) throw_unreadable(from.what);
  // libhdf5 allocated each string, and frees them by walking over the same dataspace.
  auto reclaim = [&](char** first) { H5Dvlen_reclaim(memory.get(), from.space, H5P_DEFAULT, first); };
  const std::unique_ptr<char*, decltype(reclaim)> reclaimed(texts.data(), reclaim);
  // Only now: the file tells no lengths before it is read.
  uint64_t bytes = 0;
  for (const char* one : texts) bytes += one != nullptr ? std::strlen(one) : 0;
  require_few_bytes(from, bytes);
  std::vector<std::string> strings;
  for (const char* one : texts) strings.emplace_back(one != nullptr ? one : "");
  return strings;
}

std::vector<std::string> read_all(const Strings& from) {
  if (H5Tget_class(from.type) != H5T_STRING) {
    throw sdk::Error(HR_INVALID_ARGUMENT,
                     from.what + " holds " + hdf5_type_name(from.type) + " values; strings are needed");
  }
  const hssize_t count = H5Sget_simple_extent_npoints(from.space);
  if (count < 0) throw_unreadable(from.what);
  const auto strings = static_cast<uint64_t>(count);
  if (strings > most_strings)
    throw sdk::Error(HR_UNSUPPORTED, from.what + " holds " + std::to_string(strings) + " strings; at most " +
                                         std::to_string(most_strings) + " are read");
  // The dataspace is empty or null (H5S_NULL).
  if (strings == 0) return {};
  return H5Tis_variable_str(from.type) > 0 ? read_variable(from, strings) : read_fixed(from, strings);
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
  return read_all({what, type.get(), space.get(), [&](hid_t memory, void* values) {
                     return H5Dread(opened.get(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
                   }});
}

std::vector<std::string> read_attribute_strings(hid_t file, const std::string& object, const std::string& name,
                                                const std::string& path) {
  const OpenAttribute open = open_attribute(file, object, name, path);
  return read_all({open.what, open.type.get(), open.space.get(),
                   [&](hid_t memory, void* values) { return H5Aread(open.attribute.get(), memory, values); }});
}

}  // namespace headroom
