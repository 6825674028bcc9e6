#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "arrays/hdf5_array.hpp"
#include "arrays/hdf5_child.hpp"
#include "arrays/hdf5_object.hpp"
#include "arrays/hdf5_writer.hpp"
#include "arrays/open_files.hpp"
#include "config/digest.hpp"
#include "data/normalized_copies.hpp"
#include "data/standardise.hpp"

namespace headroom {

namespace {

// Part of the mark, so that a copy of another format is made again.
constexpr int copy_format = 1;
constexpr const char* mark_name = "headroom_normalized";  // attribute of the file: "<original> <statistics>"

[[noreturn]] void refuse(const std::string& what, const std::string& why) {
  throw sdk::Error(HR_UNSUPPORTED, what + " " + why);
}

// Copies one dataset: reads whole records, packs them densely, standardises members, and writes them.
class Dataset {
 public:
  Dataset(const NormalizedCopy& copy, const std::string& name)
      : array_(copy.original, name), name_(name), layout_(array_.layout()) {
    if (layout_.shape.empty()) refuse(array_.what(), "is a single value; a copy needs rows");
    if (layout_.compound) {
      for (const ArrayMember& member : layout_.members) add(member);
    } else {
      add(layout_.element);
    }
    for (uint64_t axis = 1; axis < layout_.shape.size(); ++axis) elements_of_row_ *= layout_.shape[axis];
    for (const StandardisedMember& member : copy.members) {
      if (member.dataset == name) plan(member);
    }
  }

  void declare(Hdf5Writer& writer) {
    // No chunk shape: the copy is contiguous.
    hr_array_spec spec{};
    spec.struct_size = sizeof spec;
    spec.ndim = static_cast<int32_t>(layout_.shape.size());
    spec.dataset = name_.c_str();
    std::copy(layout_.shape.begin(), layout_.shape.end(), spec.shape);
    spec.dtype = members_.front().dtype;
    if (layout_.compound) {
      spec.member_count = static_cast<uint32_t>(members_.size());
      spec.members = members_.data();
      spec.record_bytes = record_bytes_;
    }
    id_ = writer.dataset(spec);
  }

  void copy(Hdf5Writer& writer, const std::function<void(uint64_t)>& progress) {
    const uint64_t row_bytes = elements_of_row_ * record_bytes_;
    // declare() has refused a dataset without rows, so that shape[0] is at least 1.
    const uint64_t step =
        std::clamp<uint64_t>(copied_at_once_bytes / std::max<uint64_t>(row_bytes, 1), 1, layout_.shape[0]);
    std::vector<std::byte> block(step * row_bytes);
    for (uint64_t first = 0; first < layout_.shape[0]; first += step) {
      const uint64_t rows = std::min(step, layout_.shape[0] - first);
      read(first, rows, block.data());
      for (const Change& change : changes_) standardise(change, block.data(), rows * elements_of_row_);
      writer.append(id_, block.data(), rows);
      progress(rows * row_bytes);
    }
  }

 private:
  struct Change {
    uint64_t offset, values;
    bool is_f64, field_is_f32;
    const FieldStatistics* statistics;
  };

  void add(const ArrayMember& member) {
    if (!member.readable()) refuse(array_.what(), "holds " + member.type_name + ", which cannot be copied");
    hr_array_member made{};
    made.struct_size = sizeof made;
    made.ndim = static_cast<int32_t>(member.shape.size());
    std::copy(member.shape.begin(), member.shape.end(), made.shape);
    // The text is the layout's, which lives as long as this.
    made.name = member.name.c_str();
    made.dtype = member.dtype;
    // Members lie densely in the copy, whatever gaps the original has.
    made.offset = record_bytes_;
    members_.push_back(made);
    record_bytes_ += member.values * (member.dtype.bits / 8);
  }

  void plan(const StandardisedMember& wanted) {
    const bool whole = wanted.member.empty();
    const auto at =
        std::ranges::find_if(layout_.members, [&](const ArrayMember& member) { return member.name == wanted.member; });
    if (whole == layout_.compound || (!whole && at == layout_.members.end()))
      refuse(array_.what(), "has no member '" + wanted.member + "'");
    const ArrayMember& member = whole ? layout_.element : *at;
    const bool is_f64 = member.dtype.bits == 64;
    // The copy has to hold what the normaliser would give: a float64 field needs a float64 member.
    if (member.dtype.code != kDLFloat || member.dtype.bits < 32 || (!is_f64 && !wanted.field_is_f32))
      refuse(array_.what(), "holds " + member.type_name + ", which cannot hold standardised values to the bit");
    // A plain dataset has the channels along its rows, a compound inside of the member.
    const uint64_t values = whole ? elements_of_row_ : member.values, channels = wanted.statistics.mean.size();
    if (channels != 1 && values != channels) {
      refuse(array_.what(), "has " + std::to_string(values) + " values in a record for " + std::to_string(channels) +
                                " channels of field '" + wanted.statistics.field + "'");
    }
    const uint64_t offset = whole ? 0 : members_[static_cast<size_t>(at - layout_.members.begin())].offset;
    changes_.push_back({offset, whole ? 1 : member.values, is_f64, wanted.field_is_f32, &wanted.statistics});
  }

  void read(uint64_t first, uint64_t rows, std::byte* block) const {
    std::vector<uint64_t> start(layout_.shape.size(), 0), count = layout_.shape;
    start[0] = first;
    count[0] = rows;
    std::vector<hr_array_target> targets;
    for (uint32_t i = 0; i < members_.size(); ++i) {
      targets.push_back(
          {layout_.compound ? i : HR_WHOLE, members_[i].dtype, block + members_[i].offset, record_bytes_});
    }
    array_.read_box(start, count, targets);
  }

  void standardise(const Change& change, std::byte* block, uint64_t records) const {
    if (!change.is_f64) return standardise<float, float>(change, block, records);
    if (change.field_is_f32) return standardise<double, float>(change, block, records);
    standardise<double, double>(change, block, records);
  }

  // What the normaliser would do to the value that the source delivers, of type Delivered: the same arithmetic, to the
  // bit.
  template <class Stored, class Delivered>
  void standardise(const Change& change, std::byte* block, uint64_t records) const {
    const std::vector<double>& mean = change.statistics->mean;
    const std::vector<double> inverse_std = inverse(change.statistics->std);
    // Begins again with every row or record: it has one value for each channel, or there is one channel (plan()).
    size_t channel = 0;
    for (uint64_t record = 0; record < records; ++record) {
      std::byte* at = block + record * record_bytes_ + change.offset;
      for (uint64_t i = 0; i < change.values; ++i, at += sizeof(Stored)) {
        Stored value{};
        std::memcpy(&value, at, sizeof value);
        // A float64 value of a float32 field is rounded by the source before it is standardised.
        auto delivered = static_cast<double>(static_cast<Delivered>(value));
        standardise_values(delivered, mean[channel], inverse_std[channel]);
        value = static_cast<Stored>(static_cast<Delivered>(delivered));
        std::memcpy(at, &value, sizeof value);
        if (++channel == mean.size()) channel = 0;
      }
    }
  }

  Hdf5Array array_;
  std::string name_;
  const ArrayLayout& layout_;
  std::vector<hr_array_member> members_;
  uint64_t record_bytes_ = 0, elements_of_row_ = 1;
  std::vector<Change> changes_;
  uint32_t id_ = 0;
};

hr_attribute text_attribute(const std::string& text) {
  hr_attribute attribute{};
  attribute.struct_size = sizeof attribute;
  attribute.type = HR_STRING;
  // The struct is zeroed, so the text ends with a NUL.
  std::strncpy(attribute.string, text.c_str(), sizeof attribute.string - 1);
  return attribute;
}

}  // namespace

CopyMark mark_of(const NormalizedCopy& copy) {
  nlohmann::json original = {copy_format};
  const auto add = [&original](const FileIdentity& file) {
    for (const uint64_t number : {file.device, file.inode, file.size_bytes}) original.push_back(number);
    for (const int64_t number : {file.modified_s, file.modified_ns}) original.push_back(number);
  };
  add(identify(copy.original));
  for (const StandardisedMember& member : copy.members) {
    for (const OtherFile& other : Hdf5Array(copy.original, member.dataset).plan().others) add(other.identity);
  }
  nlohmann::json done;
  for (const StandardisedMember& member : copy.members) {
    done.push_back({member.dataset, member.member, member.field_is_f32, member.statistics.mean, member.statistics.std});
  }
  return {Digest().add(original.dump()).hex(), Digest().add(done.dump()).hex()};
}

CopyMark mark_in(const std::filesystem::path& file) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file, unknown)) return {};
  try {
    const hr_attribute found =
        ask_hdf5({.kind = Hdf5Question::Kind::attribute, .path = file.string(), .object = "/", .attribute = mark_name})
            .attribute;
    const std::string text = found.type == HR_STRING ? found.string : "";
    const size_t space = text.find(' ');
    if (space == std::string::npos) return {};
    return {text.substr(0, space), text.substr(space + 1)};
  } catch (const sdk::Error&) {
    return {};
  }
}

void write_copy(const NormalizedCopy& copy, const std::filesystem::path& file,
                const std::function<void(uint64_t bytes)>& progress) {
  const CopyMark mark = mark_of(copy);
  std::set<std::string> names;
  for (const StandardisedMember& member : copy.members) names.insert(member.dataset);
  Hdf5Writer writer(file);
  for (const std::string& name : names) {
    Dataset dataset(copy, name);
    dataset.declare(writer);
    dataset.copy(writer, progress);
  }
  // A file that changed while it was read may have given values of two states.
  if (mark_of(copy) != mark) throw_changed(copy.original);
  writer.attribute("/", mark_name, text_attribute(mark.original + " " + mark.statistics));
  writer.commit();
}

}  // namespace headroom
