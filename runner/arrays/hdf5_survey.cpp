#include <algorithm>

#include "arrays/hdf5_plan.hpp"
#include "arrays/inspect.hpp"
#include "headroom/sdk/shape_text.hpp"

namespace headroom {

namespace {

// A damaged file may claim any number of these.
constexpr size_t most_objects = 100'000;
constexpr int most_members = 64;        // that a type's text lists
constexpr size_t most_attributes = 64;  // whose names are taken

// External first: H5Pget_layout() calls it contiguous too.
std::string layout_name(hid_t creation) {
  if (H5Pget_external_count(creation) > 0) return "external";
  switch (H5Pget_layout(creation)) {
    case H5D_CONTIGUOUS:
      return "contiguous";
    case H5D_CHUNKED:
      return "chunked";
    case H5D_COMPACT:
      return "compact";
    case H5D_VIRTUAL:
      return "virtual";
    default:
      return "unknown";
  }
}

void take_filters(hid_t creation, SurveyedObject& object) {
  const int count = H5Pget_nfilters(creation);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    char name[64] = "";
    const H5Z_filter_t id =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, sizeof name, name, &config);
    if (id < 0) continue;
    // libhdf5 may cut a long name without a NUL.
    name[sizeof name - 1] = '\0';
    object.filters.push_back({id, name, H5Zfilter_avail(id) > 0});
  }
}

void take_dataset(hid_t file, SurveyedObject& object) {
  const Handle dataset(H5Dopen2(file, object.name.c_str(), H5P_DEFAULT));
  const Handle space(dataset ? H5Dget_space(dataset.get()) : H5I_INVALID_HID);
  const Handle type(dataset ? H5Dget_type(dataset.get()) : H5I_INVALID_HID);
  const Handle creation(dataset ? H5Dget_create_plist(dataset.get()) : H5I_INVALID_HID);
  if (!space || !type || !creation) {
    object.problem = "libhdf5 cannot open it: " + hdf5_reason();
    return;
  }
  hsize_t extent[H5S_MAX_RANK] = {};
  const int axes = H5Sget_simple_extent_dims(space.get(), extent, nullptr);
  object.shape.assign(extent, extent + std::max(axes, 0));
  object.type = type_text(type.get());
  object.references = H5Tdetect_class(type.get(), H5T_REFERENCE) > 0;
  object.element_bytes = H5Tget_size(type.get());
  object.layout = layout_name(creation.get());
  if (object.layout == "chunked") {
    const int chunk_axes = H5Pget_chunk(creation.get(), H5S_MAX_RANK, extent);
    object.chunk.assign(extent, extent + std::max(chunk_axes, 0));
  }
  take_filters(creation.get(), object);
  object.stored_bytes = H5Dget_storage_size(dataset.get());
  object.raw_bytes = object.element_bytes;
  for (const uint64_t length : object.shape) {
    // A shape whose bytes do not fit into 64 bits is damaged; the largest number stands for it.
    if (__builtin_mul_overflow(object.raw_bytes, length, &object.raw_bytes)) object.raw_bytes = UINT64_MAX;
  }
  // A null dataspace has no axes, as a scalar has none, but no element either.
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) object.raw_bytes = 0;
}

herr_t take_attribute(hid_t /*object*/, const char* name, const H5A_info_t* /*info*/, void* context) {
  auto& names = *static_cast<std::vector<std::string>*>(context);
  names.emplace_back(name);
  // A positive value ends the iteration without an error.
  return names.size() < most_attributes ? 0 : 1;
}

void take_attributes(hid_t file, SurveyedObject& object) {
  hsize_t at = 0;
  // A failure is not looked at: the survey does without the names that cannot be read.
  H5Aiterate_by_name(file, object.name.c_str(), H5_INDEX_NAME, H5_ITER_INC, &at, take_attribute, &object.attributes,
                     H5P_DEFAULT);
}

struct Walk {
  hid_t file;
  Survey* survey;
};

herr_t take_object(hid_t /*root*/, const char* name, const H5O_info_t* info, void* context) {
  const auto& [file, survey] = *static_cast<Walk*>(context);
  if (info->type != H5O_TYPE_GROUP && info->type != H5O_TYPE_DATASET) return 0;
  if (survey->objects.size() >= most_objects) {
    survey->cut_off = true;
    return 1;
  }
  SurveyedObject& object = survey->objects.emplace_back();
  // H5Ovisit2() calls the root ".", and all others by their path without the first "/".
  object.name = name[0] == '.' && name[1] == '\0' ? "/" : "/" + std::string(name);
  object.is_group = info->type == H5O_TYPE_GROUP;
  if (info->num_attrs > 0) take_attributes(file, object);
  if (!object.is_group) take_dataset(file, object);
  return 0;
}

}  // namespace

std::string type_text(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_ARRAY: {
      const Handle base(H5Tget_super(type));
      hsize_t extent[H5S_MAX_RANK] = {};
      const int axes = H5Tget_array_dims2(type, extent);
      return type_text(base.get()) +
             sdk::shape_text(std::vector<uint64_t>(extent, extent + std::clamp(axes, 0, H5S_MAX_RANK)));
    }
    case H5T_COMPOUND: {
      std::string text = "{";
      const int members = H5Tget_nmembers(type);
      for (int i = 0; i < std::min(members, most_members); ++i) {
        const Handle member(H5Tget_member_type(type, static_cast<unsigned>(i)));
        char* name = H5Tget_member_name(type, static_cast<unsigned>(i));
        text += std::string(i > 0 ? ", " : "") + (name != nullptr ? name : "") + " " + type_text(member.get());
        H5free_memory(name);
      }
      return text + (members > most_members ? ", ...}" : "}");
    }
    case H5T_VLEN: {
      const Handle base(H5Tget_super(type));
      return "list of " + type_text(base.get());
    }
    case H5T_STRING:
      return H5Tis_variable_str(type) > 0 ? "string" : "string of " + std::to_string(H5Tget_size(type));
    default:
      return hdf5_type_name(type);
  }
}

Survey survey_file(hid_t file, const std::string& path) {
  Survey survey;
  Walk walk{file, &survey};
  // Visits each object once, whatever hard links lead to it.
  if (H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, take_object, &walk, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS) < 0) {
    throw sdk::Error(HR_DATA_CORRUPT, in_quotes(path) + " cannot be looked through: " + hdf5_reason() +
                                          "; the file is damaged: copy it again or leave it out");
  }
  const Handle creation(H5Fget_create_plist(file));
  hsize_t user_block = 0;
  if (creation && H5Pget_userblock(creation.get(), &user_block) >= 0) survey.user_block_bytes = user_block;
  return survey;
}

}  // namespace headroom
