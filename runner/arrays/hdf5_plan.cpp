#include "arrays/hdf5_plan.hpp"

#include <cerrno>
#include <fcntl.h>

#include "arrays/chunk_list.hpp"
#include "arrays/hdf5_object.hpp"
#include "arrays/plan_check.hpp"
#include "memory/descriptor.hpp"

namespace headroom {

namespace {

// The whole dataset's bytes stand in one run from an offset that is inside of the file.
std::string plan_contiguous(hid_t dataset, hid_t creation, ArrayPlan& plan) {
  H5D_space_status_t allocated = H5D_SPACE_STATUS_ERROR;
  if (H5Pget_external_count(creation) != 0) return "it is stored in external files";
  // An offset is told even where nothing is stored: with a user block of 512 bytes it is 511.
  if (H5Dget_space_status(dataset, &allocated) < 0 || allocated != H5D_SPACE_STATUS_ALLOCATED)
    return "nothing is stored yet";
  const haddr_t offset = H5Dget_offset(dataset);
  uint64_t bytes = plan.layout.element_bytes, end = 0;
  for (const uint64_t extent : plan.layout.shape) bytes *= extent;  // read_layout() has seen that it fits
  if (offset == HADDR_UNDEF || __builtin_add_overflow(offset, bytes, &end) || end > plan.file.size_bytes)
    return "libhdf5 does not tell where it stands";
  plan.lane = Lane::contiguous;
  plan.offset = offset;
  return "";
}

// False for a filter that only libhdf5 undoes.
bool take_filters(hid_t creation, ArrayPlan& plan) {
  const int count = H5Pget_nfilters(creation);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0, values[8] = {};
    size_t value_count = 8;
    const H5Z_filter_t id =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &value_count, values, 0, nullptr, &config);
    const auto kind = filter_kind(id);
    if (!kind || (kind == FilterKind::shuffle && value_count < 1)) return false;
    plan.filters.push_back({*kind, kind == FilterKind::shuffle ? values[0] : 0});
  }
  return count >= 0 && decodable(plan.filters);
}

// What chunks that were never written read as; zeros where nobody says.
void take_fill(hid_t dataset, hid_t creation, ArrayPlan& plan) {
  plan.fill.assign(plan.layout.record_bytes, std::byte{0});
  H5D_fill_value_t defined = H5D_FILL_VALUE_ERROR;
  H5D_fill_time_t time = H5D_FILL_TIME_ERROR;
  if (H5Pfill_value_defined(creation, &defined) < 0 || defined != H5D_FILL_VALUE_USER_DEFINED) return;
  if (H5Pget_fill_time(creation, &time) < 0 || time == H5D_FILL_TIME_NEVER) return;
  const Handle type(H5Dget_type(dataset));
  if (H5Pget_fill_value(creation, type.get(), plan.fill.data()) < 0)
    plan.fill.assign(plan.layout.record_bytes, std::byte{0});
}

std::string plan_chunked(hid_t dataset, hid_t creation, bool may_print, ArrayPlan& plan) {
  unsigned options = 0;
  if (!take_filters(creation, plan)) return "it has filters that only libhdf5 undoes";
  if (H5Pget_chunk_opts(creation, &options) < 0 || options != 0) return "its chunks at the edge are not filtered";
  if (plan.layout.chunk.size() != plan.layout.shape.size()) return "its chunks have other axes than itself";
  uint64_t cells = 1;
  for (size_t axis = 0; axis < plan.layout.shape.size(); ++axis) {
    const uint64_t extent = plan.layout.shape[axis], chunk = plan.layout.chunk[axis];
    plan.grid.push_back(extent / chunk + (extent % chunk != 0 ? 1 : 0));
    if (__builtin_mul_overflow(cells, plan.grid.back(), &cells)) return "its chunks cannot be counted";
  }
  take_fill(dataset, creation, plan);
  plan.lane = Lane::chunk_calls;
  if (cells > most_planned_chunks) return "";
  if (auto chunks = list_chunks(dataset, plan.layout, plan.grid, may_print)) {
    plan.chunks = std::move(*chunks);
    plan.lane = Lane::chunk_table;
  }
  return "";
}

// A link may lead into another file, whose offsets are not ours.
bool same_file(hid_t file, hid_t dataset) {
  H5O_info_t root, here;
  return H5Oget_info_by_name2(file, "/", &root, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
         H5Oget_info2(dataset, &here, H5O_INFO_BASIC) >= 0 && root.fileno == here.fileno;
}

// Sets the lane; returns why it is the library's, or "".
std::string choose_lane(hid_t file, hid_t dataset, bool may_print, ArrayPlan& plan) {
  const Handle creation(H5Dget_create_plist(dataset));
  if (!plan.layout.as_in_file) return "its records hold strings, lists or references";
  if (!same_file(file, dataset)) return "it stands in another file";
  switch (H5Pget_layout(creation.get())) {
    case H5D_CONTIGUOUS:
      return plan_contiguous(dataset, creation.get(), plan);
    case H5D_CHUNKED:
      return plan_chunked(dataset, creation.get(), may_print, plan);
    case H5D_COMPACT:
      return "it is stored in its object header";
    case H5D_VIRTUAL:
      return "it is put together from other datasets";
    default:
      return "its layout is unknown";
  }
}

uint64_t user_block_bytes(hid_t file) {
  const Handle creation(H5Fget_create_plist(file));
  hsize_t bytes = 0;
  return creation && H5Pget_userblock(creation.get(), &bytes) >= 0 ? bytes : 0;
}

void find_dataset(hid_t file, const std::string& name, const std::string& path) {
  const std::string what = dataset_of(name, path);
  switch (find_object(file, name, path)) {
    case Hdf5Kind::dataset:
      return;
    case Hdf5Kind::group:
      throw sdk::Error(HR_INVALID_ARGUMENT, what + " is a group, not a dataset; it holds " + contents(file, name));
    case Hdf5Kind::other:
      throw sdk::Error(HR_INVALID_ARGUMENT, what + " is a named type, not a dataset");
  }
}

}  // namespace

std::string lane_name(Lane lane) {
  switch (lane) {
    case Lane::contiguous:
      return "direct";
    case Lane::chunk_table:
      return "direct chunks";
    case Lane::chunk_calls:
      return "chunks through libhdf5";
    case Lane::library:
      break;
  }
  return "libhdf5";
}

ArrayPlan plan_array(Hdf5File& file, const std::string& dataset, bool may_print) {
  const std::string what = dataset_of(dataset, file.path());
  find_dataset(file.id(), dataset, file.path());
  const Handle opened(H5Dopen2(file.id(), dataset.c_str(), H5P_DEFAULT));
  if (!opened) {
    throw_hdf5(what + " cannot be opened", hdf5_reason());
  }
  ArrayPlan plan;
  plan.file = file.identity();
  plan.layout = read_layout(opened.get(), what);
  plan.why_library = choose_lane(file.id(), opened.get(), may_print, plan);
  if (!plan.why_library.empty()) plan.lane = Lane::library;

  const Descriptor direct(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
  if (direct.get() < 0) throw_cannot_open(file.path(), errno);
  if (!agrees_with_library(opened.get(), direct.get(), user_block_bytes(file.id()), plan)) {
    plan.lane = Lane::library;
    plan.why_library = "libhdf5 reads other bytes than stand where it says";
  }
  plan.layout.memory_type = Handle();  // libhdf5's, and so not for the threads that read
  return plan;
}

}  // namespace headroom
