#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>

#include "arrays/hdf5_plan.hpp"
#include "arrays/hdf5_rewrite.hpp"
#include "arrays/hdf5_writer.hpp"
#include "arrays/other_files.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t largest_attribute = 64u << 20;     // bytes
constexpr hsize_t largest_old_attribute = 32u << 10;  // bytes; files of the oldest format hold 64 KiB with all names
// For H5Pset_alignment(): what takes 64 KiB or more starts at a multiple of a page.
constexpr hsize_t aligned_from = 64u << 10, alignment = 4096;

struct Link {
  std::string name;
  H5L_type_t type;
  H5T_cset_t characters;
};

herr_t take_named_link(hid_t /*group*/, const char* name, const H5L_info_t* info, void* links) {
  static_cast<std::vector<Link>*>(links)->push_back({name, info->type, info->cset});
  return 0;
}

herr_t take_name(hid_t /*object*/, const char* name, const H5A_info_t* /*info*/, void* names) {
  static_cast<std::vector<std::string>*>(names)->push_back(name);
  return 0;
}

herr_t is_large(hid_t /*object*/, const char* /*name*/, const H5A_info_t* info, void* /*context*/) {
  return info->data_size > largest_old_attribute ? 1 : 0;
}

herr_t has_large(hid_t root, const char* name, const H5O_info_t* info, void* /*context*/) {
  hsize_t at = 0;
  if (info->num_attrs == 0) return 0;
  // A failure is not looked at: the copy will meet it again.
  return std::max(0,
                  H5Aiterate_by_name(root, name, H5_INDEX_NAME, H5_ITER_NATIVE, &at, is_large, nullptr, H5P_DEFAULT));
}

// Whether an attribute needs the format of libhdf5 1.8.
bool has_large_attribute(hid_t file) {
  return H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, has_large, nullptr, H5O_INFO_NUM_ATTRS) > 0;
}

// The names of other files in a file that is copied, perhaps to another folder.
class NamesOfFiles {
 public:
  NamesOfFiles(const std::string& from, const std::string& to, const std::string& tree)
      : from_(fs::absolute(from)), tree_(fs::path(tree).lexically_normal()) {
    std::error_code unknown;
    stays_ = fs::equivalent(from_.parent_path(), fs::absolute(to).parent_path(), unknown);
  }

  // `file` as the copy has to name it.
  std::string in_copy(const std::string& file) const {
    const std::string place = file_named_in(from_, file);
    return stays_ || is_copied(place) ? file : place;
  }

 private:
  bool is_copied(const fs::path& place) const {
    if (tree_.empty()) return false;
    const fs::path below = place.lexically_normal().lexically_relative(tree_);
    return !below.empty() && *below.begin() != "..";
  }

  fs::path from_, tree_;
  bool stays_ = false;
};

// Walks the links of the file from its root. H5Ocopy() of the root would copy all values too, so it is used for single
// objects only.
class Copy {
 public:
  Copy(hid_t from, hid_t to, const std::string& path, const CopyRequest& request)
      : from_(from),
        to_(to),
        path_(path),
        request_(request),
        others_(path, request.to, request.tree),
        links_(H5Pcreate(H5P_LINK_CREATE)) {
    for (const NewLayout& layout : request.layouts) layouts_[layout.dataset] = &layout;
  }

  void root() {
    H5O_info_t info;
    if (H5Oget_info_by_name2(from_, "/", &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) bad("/");
    // A group may hold a link back to the root. It becomes a link to the copy's root, and the walk ends.
    seen_[info.addr] = "/";
    attributes("/");
    members("");
  }

 private:
  [[noreturn]] void bad(const std::string& name) const {
    throw sdk::Error(HR_DATA_CORRUPT, dataset_of(name, path_) + " cannot be read: " + hdf5_reason() +
                                          "; the file is damaged: copy it again or leave it out");
  }
  [[noreturn]] void cannot_write(const std::string& name) const { throw_cannot_write(request_.to, "copy " + name); }

  void require_no_references(hid_t type, const std::string& what) const {
    if (H5Tdetect_class(type, H5T_REFERENCE) <= 0) return;
    throw sdk::Error(HR_UNSUPPORTED, what +
                                         " holds references to other objects, which would lead nowhere in a copy; "
                                         "rewrite this file with h5repack");
  }

  void members(const std::string& group) {  // "" is the root
    std::vector<Link> links;
    hsize_t at = 0;
    const std::string name = group.empty() ? "/" : group;
    if (H5Literate_by_name(from_, name.c_str(), H5_INDEX_NAME, H5_ITER_INC, &at, take_named_link, &links, H5P_DEFAULT) <
        0)
      bad(name);
    for (const Link& link : links) {
      const std::string place = group + "/" + link.name;
      // Of the name of the link that is made next.
      H5Pset_char_encoding(links_.get(), link.characters);
      if (link.type == H5L_TYPE_HARD) {
        object(place);
      } else {
        soft_link(place, link.type);
      }
    }
  }

  // Copied as a link, whether or not it leads anywhere.
  void soft_link(const std::string& name, H5L_type_t type) {
    H5L_info_t info;
    if (H5Lget_info(from_, name.c_str(), &info, H5P_DEFAULT) < 0) bad(name);
    std::vector<char> value(info.u.val_size + 1, '\0');
    if (H5Lget_val(from_, name.c_str(), value.data(), value.size(), H5P_DEFAULT) < 0) bad(name);
    herr_t status = -1;
    if (type == H5L_TYPE_SOFT) {
      status = H5Lcreate_soft(value.data(), to_, name.c_str(), links_.get(), H5P_DEFAULT);
    } else if (type == H5L_TYPE_EXTERNAL) {
      // Both will point into `value`.
      const char *file = nullptr, *there = nullptr;
      unsigned flags = 0;
      if (H5Lunpack_elink_val(value.data(), info.u.val_size, &flags, &file, &there) < 0) bad(name);
      status = H5Lcreate_external(others_.in_copy(file).c_str(), there, to_, name.c_str(), links_.get(), H5P_DEFAULT);
    } else {
      throw sdk::Error(HR_UNSUPPORTED, dataset_of(name, path_) + " is a link of a kind that cannot be copied");
    }
    if (status < 0) cannot_write(name);
  }

  void object(const std::string& name) {
    H5O_info_t info;
    if (H5Oget_info_by_name2(from_, name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) bad(name);
    const auto [known, is_new] = seen_.emplace(info.addr, name);
    // A further name of an object that the copy has already.
    if (!is_new) {
      if (H5Lcreate_hard(to_, known->second.c_str(), to_, name.c_str(), links_.get(), H5P_DEFAULT) < 0)
        cannot_write(name);
    } else if (info.type == H5O_TYPE_GROUP) {
      group(name);
    } else if (const auto layout = layouts_.find(name); layout != layouts_.end()) {
      declare(name, *layout->second);
    } else {
      if (info.type == H5O_TYPE_DATASET) require_copyable(name);
      require_copyable_attributes(name);
      // Takes attributes along, and the values of a dataset.
      if (H5Ocopy(from_, name.c_str(), to_, name.c_str(), H5P_DEFAULT, links_.get()) < 0) cannot_write(name);
    }
  }

  void require_copyable(const std::string& name) const {
    const Handle dataset(H5Dopen2(from_, name.c_str(), H5P_DEFAULT));
    const Handle type(dataset ? H5Dget_type(dataset.get()) : H5I_INVALID_HID);
    if (!type) bad(name);
    require_no_references(type.get(), dataset_of(name, path_));
    require_near_sources(dataset.get(), name);
  }

  // H5Ocopy() keeps the names of the files that a virtual dataset is put together from, and where they lead nowhere it
  // reads as fill values.
  void require_near_sources(hid_t dataset, const std::string& name) const {
    const Handle creation(H5Dget_create_plist(dataset));
    for (const std::string& file : virtual_sources(creation.get())) {
      if (file == "." || others_.in_copy(file) == file) continue;
      throw sdk::Error(HR_UNSUPPORTED, dataset_of(name, path_) + " is put together from " + in_quotes(file) +
                                           ", which a copy in another folder would not find; write the copy beside " +
                                           in_quotes(path_));
    }
  }

  // H5Ocopy() would copy references that lead nowhere, without an error.
  void require_copyable_attributes(const std::string& name) const {
    const Handle object(H5Oopen(from_, name.c_str(), H5P_DEFAULT));
    for (const std::string& attribute : attribute_names(object, name)) {
      const Handle source(H5Aopen(object.get(), attribute.c_str(), H5P_DEFAULT));
      const Handle type(source ? H5Aget_type(source.get()) : H5I_INVALID_HID);
      if (!type) bad(name);
      require_no_references(type.get(), attribute_of(attribute, name));
    }
  }

  void group(const std::string& name) {
    const Handle from(H5Gopen2(from_, name.c_str(), H5P_DEFAULT));
    // Its creation properties say, for instance, whether it keeps the order of its links.
    const Handle creation(from ? H5Gget_create_plist(from.get()) : H5I_INVALID_HID);
    if (!creation) bad(name);
    const Handle to(H5Gcreate2(to_, name.c_str(), links_.get(), creation.get(), H5P_DEFAULT));
    if (!to) cannot_write(name);
    attributes(name);
    members(name);
  }

  void attributes(const std::string& name) {
    const Handle from(H5Oopen(from_, name.c_str(), H5P_DEFAULT)), to(H5Oopen(to_, name.c_str(), H5P_DEFAULT));
    for (const std::string& attribute : attribute_names(from, name))
      copy_attribute(from.get(), to.get(), attribute, name);
  }

  // `name`: of the object.
  std::vector<std::string> attribute_names(const Handle& object, const std::string& name) const {
    std::vector<std::string> names;
    hsize_t at = 0;
    if (!object || H5Aiterate2(object.get(), H5_INDEX_NAME, H5_ITER_INC, &at, take_name, &names) < 0) bad(name);
    return names;
  }

  std::string attribute_of(const std::string& name, const std::string& object) const {
    return "attribute " + in_quotes(name) + " of " + dataset_of(object, path_);
  }

  void copy_attribute(hid_t from, hid_t to, const std::string& name, const std::string& object) const {
    const std::string what = attribute_of(name, object);
    const Handle source(H5Aopen(from, name.c_str(), H5P_DEFAULT));
    const Handle stored(source ? H5Aget_type(source.get()) : H5I_INVALID_HID);
    // A copy of the type is not tied to the old file.
    const Handle type(stored ? H5Tcopy(stored.get()) : H5I_INVALID_HID), space(H5Aget_space(source.get()));
    if (!type || !space) bad(object);
    require_no_references(type.get(), what);
    const Handle creation(H5Aget_create_plist(source.get()));  // the character set of its name
    const Handle target(H5Acreate2(to, name.c_str(), type.get(), space.get(), creation.get(), H5P_DEFAULT));
    if (!target) cannot_write(what);
    const auto points = static_cast<uint64_t>(std::max<hssize_t>(0, H5Sget_simple_extent_npoints(space.get())));
    // A null or empty dataspace has no values.
    if (points == 0 || H5Sget_simple_extent_type(space.get()) == H5S_NULL) return;
    if (points > largest_attribute / H5Tget_size(type.get()))
      throw sdk::Error(HR_UNSUPPORTED, what + " is larger than 64 MiB");
    std::vector<std::byte> values(points * H5Tget_size(type.get()));
    if (H5Aread(source.get(), type.get(), values.data()) < 0) bad(object);
    const bool written = H5Awrite(target.get(), type.get(), values.data()) >= 0;
    // Frees the strings and lists that H5Aread() allocated; other values have none.
    H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, values.data());
    if (!written) cannot_write(what);
  }

  Handle storage(hid_t source, hid_t type, const NewLayout& layout) const {
    const Handle old(H5Dget_create_plist(source));
    Handle creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_obj_track_times(creation.get(), false);
    if (layout.chunk.empty()) {
      H5Pset_layout(creation.get(), H5D_CONTIGUOUS);
      H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY);
      H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);  // every value will be written
    } else {
      const std::vector<hsize_t> chunk(layout.chunk.begin(), layout.chunk.end());
      H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data());
      if (layout.shuffle) H5Pset_shuffle(creation.get());
      if (layout.deflate >= 0) H5Pset_deflate(creation.get(), static_cast<unsigned>(layout.deflate));
    }
    // Kept as well: rows that somebody adds later read as this value until they are written.
    H5D_fill_value_t defined = H5D_FILL_VALUE_ERROR;
    if (H5Pfill_value_defined(old.get(), &defined) >= 0 && defined == H5D_FILL_VALUE_USER_DEFINED) {
      std::vector<std::byte> fill(H5Tget_size(type));
      if (H5Pget_fill_value(old.get(), type, fill.data()) >= 0) H5Pset_fill_value(creation.get(), type, fill.data());
    }
    return creation;
  }

  void declare(const std::string& name, const NewLayout& layout) {
    const Handle source(H5Dopen2(from_, name.c_str(), H5P_DEFAULT));
    const Handle stored(source ? H5Dget_type(source.get()) : H5I_INVALID_HID);
    const Handle type(stored ? H5Tcopy(stored.get()) : H5I_INVALID_HID);
    const Handle space(source ? H5Dget_space(source.get()) : H5I_INVALID_HID);
    if (!type || !space) bad(name);
    require_no_references(type.get(), dataset_of(name, path_));
    hsize_t extent[H5S_MAX_RANK] = {}, most[H5S_MAX_RANK] = {};
    const int axes = H5Sget_simple_extent_dims(space.get(), extent, most);
    // HDF5 extends chunked datasets only.
    const Handle shape(H5Screate_simple(axes, extent, layout.chunk.empty() ? nullptr : most));
    const Handle creation = storage(source.get(), type.get(), layout);
    const Handle target(
        H5Dcreate2(to_, name.c_str(), type.get(), shape.get(), links_.get(), creation.get(), H5P_DEFAULT));
    if (!target) cannot_write(name);
    attributes(name);
  }

  hid_t from_, to_;
  const std::string& path_;
  const CopyRequest& request_;
  const NamesOfFiles others_;
  Handle links_;
  std::map<std::string, const NewLayout*> layouts_;
  std::map<haddr_t, std::string> seen_;  // an object may have many names
};

}  // namespace

void copy_without_values(hid_t file, const std::string& path, const CopyRequest& request) {
  const Handle old(H5Fget_create_plist(file));
  const Handle creation(H5Pcreate(H5P_FILE_CREATE)), access(H5Pcreate(H5P_FILE_ACCESS));
  hsize_t user_block = 0;
  H5Pget_userblock(old.get(), &user_block);
  H5Pset_userblock(creation.get(), user_block);
  if (user_block == 0) H5Pset_alignment(access.get(), aligned_from, alignment);  // libhdf5 cannot have both
  if (has_large_attribute(file)) H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST);
  Handle to(H5Fcreate(request.to.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()));
  if (!to) throw_cannot_write(request.to, "create");
  Copy(file, to.get(), path, request).root();
  // A Handle reports no failure to close, so a full disk has to show here.
  if (H5Fflush(to.get(), H5F_SCOPE_LOCAL) < 0) throw_cannot_write(request.to, "flush");
}

}  // namespace headroom
