#include "arrays/hdf5_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <unistd.h>

#include "arrays/hdf5_object.hpp"
#include "arrays/open_files.hpp"
#include "own_suffix.hpp"

namespace headroom {

namespace {

std::string cause(const std::string& reason) {
  const int code = errno_of(reason);
  if (code == ENOSPC) return "the disk is full; check the space of its folder";
  // A write beyond RLIMIT_FSIZE gives EFBIG, since Headroom's programs ignore SIGXFSZ.
  if (code == EFBIG) return "the limit on file sizes is too low (see `ulimit -f`)";
  return reason + "; check the space and the permissions of its folder";
}

void sync_path(const std::filesystem::path& path, int flags) {
  const Descriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  if (file.get() >= 0 && fsync(file.get()) == 0) return;
  if (errno == EINVAL) return;  // a file system that cannot
  throw CannotWrite("cannot write " + in_quotes(path.string()) + " to the disk: " + std::strerror(errno) +
                    "; check the disk");
}

}  // namespace

void throw_cannot_write(const std::filesystem::path& path, const std::string& action) {
  throw CannotWrite("cannot write " + in_quotes(path.string()) + " (" + action + "): " + cause(hdf5_reason()));
}

// The bytes go to the disk before the name does: otherwise a crash could leave the name on an unfinished file. The
// folder is last, since it holds the name.
void put_in_place(const std::filesystem::path& partial, const std::filesystem::path& path) {
  sync_path(partial, O_RDONLY);
  std::error_code failed;
  std::filesystem::rename(partial, path, failed);
  if (failed) throw CannotWrite("cannot put " + in_quotes(path.string()) + " in place: " + failed.message());
  sync_path(path.has_parent_path() ? path.parent_path() : ".", O_RDONLY | O_DIRECTORY);
}

namespace {

Handle bool_type() {
  Handle type(H5Tenum_create(H5T_STD_I8LE));  // as numpy writes it
  for (const int8_t value : {int8_t{0}, int8_t{1}}) H5Tenum_insert(type.get(), value == 0 ? "FALSE" : "TRUE", &value);
  return type;
}

// Of variable length.
Handle string_type() {
  Handle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

// Little-endian in files whatever the machine is, and in memory too: convert.cpp asserts such a host.
hid_t standard_type(DLDataType dtype) {
  switch (dtype.lanes == 1 ? dtype.code << 8 | dtype.bits : 0) {
    case kDLInt << 8 | 8:
      return H5T_STD_I8LE;
    case kDLInt << 8 | 16:
      return H5T_STD_I16LE;
    case kDLInt << 8 | 32:
      return H5T_STD_I32LE;
    case kDLInt << 8 | 64:
      return H5T_STD_I64LE;
    case kDLUInt << 8 | 8:
      return H5T_STD_U8LE;
    case kDLUInt << 8 | 16:
      return H5T_STD_U16LE;
    case kDLUInt << 8 | 32:
      return H5T_STD_U32LE;
    case kDLUInt << 8 | 64:
      return H5T_STD_U64LE;
    case kDLFloat << 8 | 32:
      return H5T_IEEE_F32LE;
    case kDLFloat << 8 | 64:
      return H5T_IEEE_F64LE;
    default:
      return H5I_INVALID_HID;
  }
}

Handle element_type(DLDataType dtype, std::span<const uint64_t> shape, const std::string& what) {
  const bool truth = dtype.code == kDLBool && dtype.bits == 8 && dtype.lanes == 1;
  const hid_t standard = standard_type(dtype);
  if (!truth && standard < 0) {
    throw sdk::Error(HR_INVALID_ARGUMENT,
                     what + " is of a type that cannot be written; integers, float32, float64 and bool can");
  }
  Handle type = truth ? bool_type() : Handle(H5Tcopy(standard));
  if (shape.empty()) return type;
  const std::vector<hsize_t> extent(shape.begin(), shape.end());
  return Handle(H5Tarray_create2(type.get(), static_cast<unsigned>(extent.size()), extent.data()));
}

Handle record_type(const hr_array_spec& spec, const std::string& what) {
  if (spec.members == nullptr || spec.record_bytes == 0)
    throw sdk::Error(HR_INVALID_ARGUMENT, what + " is a compound without members or record size");
  Handle record(H5Tcreate(H5T_COMPOUND, spec.record_bytes));
  // A plugin that was built with a later abi.h may have larger members, so their own struct_size is the distance
  // between them.
  const auto* bytes = reinterpret_cast<const char*>(spec.members);
  for (uint32_t i = 0; i < spec.member_count; ++i) {
    const auto& member = *reinterpret_cast<const hr_array_member*>(bytes + size_t{i} * spec.members->struct_size);
    const std::string name = "member " + in_quotes(member.name != nullptr ? member.name : "") + " of " + what;
    if (member.ndim < 0 || member.ndim > HR_MAX_DIMS)
      throw sdk::Error(HR_INVALID_ARGUMENT, name + " has more than 8 axes");
    const Handle type = element_type(member.dtype, {member.shape, static_cast<size_t>(member.ndim)}, name);
    if (!type || member.name == nullptr || H5Tinsert(record.get(), member.name, member.offset, type.get()) < 0) {
      throw sdk::Error(HR_INVALID_ARGUMENT, name + " does not fit into records of " +
                                                std::to_string(spec.record_bytes) + " bytes: " + hdf5_reason());
    }
  }
  return record;
}

void check_spec(const hr_array_spec& spec, const std::string& what) {
  // ndim comes from a plugin and is not checked yet: it must not lead beyond spec.chunk here.
  const bool chunked = spec.ndim > 0 && spec.ndim <= HR_MAX_DIMS &&
                       std::any_of(spec.chunk, spec.chunk + spec.ndim, [](uint64_t c) { return c != 0; });
  const auto refuse = [&](const std::string& why) { throw sdk::Error(HR_INVALID_ARGUMENT, what + " " + why); };
  if (spec.ndim < 1 || spec.ndim > HR_MAX_DIMS)
    refuse("has " + std::to_string(spec.ndim) + " axes; 1 to 8 can be written");
  if (chunked && std::any_of(spec.chunk, spec.chunk + spec.ndim, [](uint64_t c) { return c == 0; }))
    refuse("has a chunk without extent");
  // HDF5 extends and filters chunked datasets only.
  if (!chunked && spec.shape[0] == 0) refuse("has an unknown length and no chunk shape; give one of them");
  if (!chunked && spec.deflate != 0) refuse("is to be compressed without a chunk shape; give one");
  if (spec.deflate < 0 || spec.deflate > 9)
    refuse("asks for deflate level " + std::to_string(spec.deflate) + "; 0 to 9 exist");
}

}  // namespace

Hdf5Writer::Hdf5Writer(const std::filesystem::path& path) : path_(path) {
  // In the same folder, so that rename() is atomic. The dot hides it from headroom.files/1.
  partial_ = path.parent_path() / ("." + path.filename().string() + ".partial-" + own_suffix());
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code unknown;
  if (!std::filesystem::is_directory(folder, unknown)) {
    throw sdk::Error(HR_IO, "cannot write " + in_quotes(path.string()) + ": folder " + in_quotes(folder.string()) +
                                " does not exist; make it first");
  }
  const Hdf5Lock lock;
  file_ = Handle(H5Fcreate(partial_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  if (!file_) throw_cannot_write(path_, "create");
}

Hdf5Writer::~Hdf5Writer() {
  // An open dataset would keep the file open beyond its own handle (H5F_CLOSE_WEAK).
  datasets_.clear();
  // commit() has closed the file already, and removes what it could not put in place.
  const bool open = static_cast<bool>(file_);
  file_ = Handle();
  if (open) unlink(partial_.c_str());
}

void Hdf5Writer::create(Dataset& dataset, const hr_array_spec& spec, hid_t file_type) {
  const std::vector<hsize_t> chunk(spec.chunk, spec.chunk + spec.ndim);
  std::vector<hsize_t> most = dataset.shape;
  if (dataset.grows) most[0] = H5S_UNLIMITED;
  const Handle space(H5Screate_simple(spec.ndim, dataset.shape.data(), most.data()));
  const Handle storage(H5Pcreate(H5P_DATASET_CREATE)), links(H5Pcreate(H5P_LINK_CREATE));
  // Time stamps would make the same calls give different bytes.
  H5Pset_obj_track_times(storage.get(), false);
  H5Pset_create_intermediate_group(links.get(), 1);
  if (chunk[0] != 0) H5Pset_chunk(storage.get(), spec.ndim, chunk.data());
  if (spec.deflate > 0) H5Pset_shuffle(storage.get());  // numbers deflate better with their bytes sorted by place
  if (spec.deflate > 0) H5Pset_deflate(storage.get(), static_cast<unsigned>(spec.deflate));
  dataset.id = Handle(space ? H5Dcreate2(file_.get(), dataset.name.c_str(), file_type, space.get(), links.get(),
                                         storage.get(), H5P_DEFAULT)
                            : H5I_INVALID_HID);
  if (!dataset.id) throw_cannot_write(path_, "create " + dataset.name);
}

uint32_t Hdf5Writer::dataset(const hr_array_spec& spec) {
  const Hdf5Lock lock;
  Dataset dataset;
  dataset.name = absolute_name(spec.dataset != nullptr ? spec.dataset : "");
  const std::string what = in_quotes(dataset.name) + " of " + in_quotes(path_.string());
  check_spec(spec, what);
  dataset.shape.assign(spec.shape, spec.shape + spec.ndim);
  // abi.h: 0 rows are a length that is not known yet.
  dataset.grows = spec.shape[0] == 0;
  dataset.memory_type = spec.member_count > 0 ? record_type(spec, what) : element_type(spec.dtype, {}, what);
  // A record in memory may have gaps between its members; in the file it has none.
  const Handle file_type(H5Tcopy(dataset.memory_type.get()));
  if (spec.member_count > 0) H5Tpack(file_type.get());
  create(dataset, spec, file_type.get());
  datasets_.push_back(std::move(dataset));
  return static_cast<uint32_t>(datasets_.size() - 1);
}

void Hdf5Writer::append(uint32_t id, const void* data, uint64_t rows) {
  const Hdf5Lock lock;
  if (id >= datasets_.size())
    throw sdk::Error(HR_INVALID_ARGUMENT, in_quotes(path_.string()) + " has no dataset number " + std::to_string(id));
  Dataset& dataset = datasets_[id];
  const std::string what = in_quotes(dataset.name) + " of " + in_quotes(path_.string());
  if (!dataset.grows && rows > dataset.shape[0] - dataset.rows_done) {
    throw sdk::Error(HR_INVALID_ARGUMENT, what + " was declared with " + std::to_string(dataset.shape[0]) + " rows; " +
                                              std::to_string(dataset.rows_done) + " + " + std::to_string(rows) +
                                              " are too many");
  }
  if (rows == 0) return;
  if (data == nullptr) throw sdk::Error(HR_INVALID_ARGUMENT, what + " was given rows without values");
  if (dataset.grows) {
    dataset.shape[0] += rows;
    if (H5Dset_extent(dataset.id.get(), dataset.shape.data()) < 0) throw_cannot_write(path_, "extend " + dataset.name);
  }
  std::vector<hsize_t> start(dataset.shape.size(), 0), count = dataset.shape;
  start[0] = dataset.rows_done;
  count[0] = rows;
  // Asked for after H5Dset_extent(), so that it includes the new rows.
  const Handle space(H5Dget_space(dataset.id.get())),
      memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
  H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
  if (H5Dwrite(dataset.id.get(), dataset.memory_type.get(), memory.get(), space.get(), H5P_DEFAULT, data) < 0) {
    throw_cannot_write(path_, "append to " + dataset.name);
  }
  dataset.rows_done += rows;
}

void Hdf5Writer::attribute(const std::string& object, const std::string& name, const hr_attribute& value) {
  const Hdf5Lock lock;
  const std::string place = absolute_name(object);
  find_object(file_.get(), place, path_.string());
  const auto refuse = [&](const char* why) {
    throw sdk::Error(HR_INVALID_ARGUMENT, "attribute " + in_quotes(name) + " of " + in_quotes(place) + " " + why);
  };
  Handle type, space(H5Screate(H5S_SCALAR));
  // H5Awrite() takes a string of variable length by the address of a pointer to it.
  const char* string = value.string;
  const void* data = nullptr;
  switch (value.type) {
    case HR_I64:
      type = Handle(H5Tcopy(H5T_STD_I64LE)), data = &value.i64;
      break;
    case HR_F64:
      type = Handle(H5Tcopy(H5T_IEEE_F64LE)), data = &value.f64;
      break;
    case HR_STRING:
      if (strnlen(string, sizeof value.string) == sizeof value.string) refuse("is a string without an end");
      type = string_type(), data = &string;
      break;
    default:
      refuse("is neither an integer, a float nor a string");
  }
  set_attribute(place, name, type, space, data);
}

void Hdf5Writer::strings(const std::string& object, const std::string& name, const std::vector<std::string>& values) {
  const Hdf5Lock lock;
  const std::string place = absolute_name(object);
  find_object(file_.get(), place, path_.string());
  std::vector<const char*> pointers;
  for (const std::string& value : values) pointers.push_back(value.c_str());
  const hsize_t count = pointers.size();
  set_attribute(place, name, string_type(), Handle(H5Screate_simple(1, &count, nullptr)), pointers.data());
}

void Hdf5Writer::set_attribute(const std::string& place, const std::string& name, const Handle& type,
                               const Handle& space, const void* data) {
  // H5Acreate_by_name() fails where the name is taken.
  if (H5Aexists_by_name(file_.get(), place.c_str(), name.c_str(), H5P_DEFAULT) > 0) {
    H5Adelete_by_name(file_.get(), place.c_str(), name.c_str(), H5P_DEFAULT);
  }
  const Handle attribute(H5Acreate_by_name(file_.get(), place.c_str(), name.c_str(), type.get(), space.get(),
                                           H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  if (!attribute || H5Awrite(attribute.get(), type.get(), data) < 0) throw_cannot_write(path_, "attribute " + name);
}

void Hdf5Writer::commit() {
  const Hdf5Lock lock;
  for (const Dataset& dataset : datasets_) {
    if (dataset.rows_done == dataset.shape[0]) continue;
    throw sdk::Error(HR_INVALID_ARGUMENT, in_quotes(dataset.name) + " of " + in_quotes(path_.string()) +
                                              " was declared with " + std::to_string(dataset.shape[0]) +
                                              " rows and got " + std::to_string(dataset.rows_done));
  }
  // A Handle reports no failure to close, so a full disk has to show here.
  if (H5Fflush(file_.get(), H5F_SCOPE_LOCAL) < 0) throw_cannot_write(path_, "flush");
  // All identifiers, or the file would stay open and get its name before its last bytes.
  datasets_.clear();
  file_ = Handle();
  // The destructor removes only a file that is still open.
  try {
    put_in_place(partial_, path_);
  } catch (...) {
    unlink(partial_.c_str());
    throw;
  }
}

}  // namespace headroom
