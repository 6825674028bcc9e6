// Reads samples into slots: a clip of a sequence, cropped and turned as the sample's key says.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clip.hpp"
#include "headroom/sdk/kept_open.hpp"
#include "layout.hpp"

namespace spike_hdf5 {

// Field numbers, in the order of SpikeSource::fields().
struct FieldNumbers {
  explicit FieldNumbers(const Wanted& wanted)
      : blur(wanted.blur ? std::optional<uint32_t>(0) : std::nullopt),
        sharp(wanted.blur ? 1 : 0),
        voxel(wanted.voxel ? std::optional<uint32_t>(sharp + 1) : std::nullopt) {}
  std::optional<uint32_t> blur;
  uint32_t sharp;
  std::optional<uint32_t> voxel;
};

// What a source offers, resolved: fixed once the source is open, shared by its readers.
struct Selection {
  struct OneSequence {
    Place place;
    Facts facts;
  };
  struct Split {
    std::string name;
    std::vector<OneSequence> sequences;
    std::vector<uint64_t> first_sample;  // of each, and the end behind the last
  };
  std::vector<Split> splits;
  Wanted wanted;
  VoxelTransform transform{true, 0.0, 1.0};
  uint64_t clip_length = 1, clip_stride = 1;
  uint64_t crop_size = 0;  // 0: whole frames
  bool random_crop = true, random_flip = true;

  bool augments() const { return random_crop || random_flip; }
  // Whether a frame is in more than one sample, or in one that is never the same again; else whole samples are worth
  // keeping, which the host does.
  bool keeps_frames() const { return augments() || clip_stride < clip_length; }

  Size size_of(const Facts& facts) const { return crop_size == 0 ? facts.frame : Size{crop_size, crop_size}; }
  uint64_t clips_of(const Facts& facts) const {
    return facts.frames < clip_length ? 0 : (facts.frames - clip_length) / clip_stride + 1;
  }
};

// The clip of a sample. With `draw`, crop and orientation are drawn from the key; otherwise centre crop, unchanged.
Clip clip_of(const Selection& selection, const Facts& facts, uint64_t number, uint64_t key, bool draw);

// For one thread. Keeps the sequences it read last open.
class Reader {
 public:
  Reader(const sdk::Host& host, const Selection& selection)
      : host_(host), selection_(&selection), clips_(host, selection.transform) {}
  void read(const sdk::ReadRequest& request);

 private:
  Sequence& open(uint32_t split, uint64_t sequence);
  void read_sample(const sdk::ReadRequest& request, uint64_t i);

  sdk::Host host_;
  const Selection* selection_;
  sdk::KeptOpen<std::unique_ptr<Sequence>> open_;
  ClipReader clips_;
};

}  // namespace spike_hdf5
