// Reads samples into slots.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "field.hpp"
#include "headroom/datasource.hpp"
#include "headroom/sdk/kept_open.hpp"
#include "sampling.hpp"
#include "sequence.hpp"

namespace hdf5_source {

// What a source offers, resolved: fixed once the source is open, shared by its readers.
struct Contents {
  Settings settings;
  std::vector<FieldLayout> fields;
  std::vector<sdk::Field> outputs;           // fields, then their masks
  std::vector<std::string> datasets;         // as the settings name them
  std::vector<std::vector<uint32_t>> reads;  // fields that one box fills
  std::vector<uint64_t> crop_extents;        // of the axes a crop is cut from
  std::vector<Sequence> sequences;
  struct Split {
    std::string name;
    SampleTable samples;
    std::vector<sdk::Group> groups;
  };
  std::vector<Split> splits;
};

// For one thread. Keeps the sequences it read last open.
class Reader {
 public:
  Reader(const sdk::Host& host, const Contents& contents) : host_(host), contents_(&contents) {}
  void read(const sdk::ReadRequest& request);

 private:
  using Arrays = std::vector<sdk::Array>;  // of a sequence, by dataset
  struct Place {                           // where one sample comes from
    uint64_t i = 0;
    uint32_t sequence = 0;
    RowRange rows;  // that it stays in
    uint64_t start = 0;
  };
  // Rows [begin, end) of the sequence that a field reads, and the row of its window they go to.
  struct Slice {
    uint64_t begin = 0, end = 0, position = 0;
  };
  struct Box {
    std::array<uint64_t, HR_MAX_DIMS> start{}, count{};
    std::size_t axes = 0;
    Slice slice;  // of its rows
    uint64_t elements() const {
      uint64_t all = 1;
      for (std::size_t axis = 0; axis < axes; ++axis) all *= count[axis];
      return all;
    }
  };
  struct Target {  // where a box's values of one field go
    const FieldLayout* field;
    uint32_t member;
    std::byte *slot, *to;
    bool staged;  // `to` is not in the slot: elements go to scattered places
  };

  Place place_of(const sdk::ReadRequest& request, uint64_t i) const;
  Arrays opened(uint32_t sequence) const;
  Box box_of(const sdk::ReadRequest& request, const Place& place, const FieldLayout& field) const;
  bool read_box(const sdk::Array& array, const Box& box, std::span<const Target> targets) const;
  void read_fields(const sdk::ReadRequest& request, const Place& place, const std::vector<uint32_t>& fields);
  void put_padding(std::byte* slot, const FieldLayout& field, const Slice& slice) const;
  void put_mask(const sdk::ReadRequest& request, const Place& place, uint32_t f);
  void put_labels(std::byte* slot, const Place& place, uint32_t f) const;
  const std::string& text_of(const Place& place, uint32_t f) const;
  uint64_t counted(const Arrays& arrays, const Place& place, const FieldLayout& field) const;
  void require_finite(const Target& target, const Place& place) const;

  static Slice slice_of(const FieldLayout& field, const Place& place);

  sdk::Host host_;
  const Contents* contents_;
  sdk::KeptOpen<Arrays> open_;
  std::vector<std::vector<std::byte>> staged_;  // boxes whose elements go to scattered places, by field
};

}  // namespace hdf5_source
