#include "reader.hpp"

#include <algorithm>

#include "kept_frames.hpp"

namespace spike_hdf5 {

using namespace sdk::literals;

Clip clip_of(const Selection& selection, const Facts& facts, uint64_t number, uint64_t key, bool draw) {
  const Size size = selection.size_of(facts);
  const uint64_t down = facts.frame.height - size.height, right = facts.frame.width - size.width;
  Clip clip{number * selection.clip_stride, selection.clip_length, {down / 2, right / 2, size}};
  if (draw && selection.random_crop) {
    clip.crop.top = sdk::below(key, "top"_site, down + 1);
    clip.crop.left = sdk::below(key, "left"_site, right + 1);
  }
  if (draw && selection.random_flip) {
    const auto tossed = [&](uint64_t site) { return sdk::uniform(key, site) < 0.5; };
    clip.orientation = {tossed("mirrored"_site), tossed("flipped"_site),
                        size.height == size.width && tossed("transposed"_site)};
  }
  return clip;
}

void Reader::read(const sdk::ReadRequest& request) {
  for (uint64_t i = 0; i < request.count(); ++i) {
    host_.throw_if_cancelled();
    read_sample(request, i);
  }
}

void Reader::read_sample(const sdk::ReadRequest& request, uint64_t i) {
  const Selection::Split& split = selection_->splits[request.split()];
  const auto after = std::ranges::upper_bound(split.first_sample, request.index(i));
  const auto place = static_cast<std::size_t>(after - split.first_sample.begin()) - 1;
  const uint64_t number = request.index(i) - split.first_sample[place];
  const Clip clip = clip_of(*selection_, split.sequences[place].facts, number, request.key(i), request.augment());

  Sequence& sequence = open(request.split(), place);
  const FieldNumbers fields(selection_->wanted);
  const auto read_images = [&](uint32_t field, Image image) {
    if (const auto planes = request.bytes(field, i); !planes.empty()) clips_.read_images(sequence, image, clip, planes);
  };
  if (fields.blur) read_images(*fields.blur, Image::blur);
  read_images(fields.sharp, Image::sharp);
  if (!fields.voxel) return;
  if (const auto voxel = request.slot<float>(*fields.voxel, i); !voxel.empty())
    clips_.read_voxels(sequence, clip, voxel);
}

Sequence& Reader::open(uint32_t split, uint64_t sequence) {
  uint64_t number = sequence;
  for (uint32_t before = 0; before < split; ++before) number += selection_->splits[before].sequences.size();
  const Selection::OneSequence& known = selection_->splits[split].sequences[sequence];
  return *open_.get(number, [&] {
    auto opened = open_sequence(host_, known.place, selection_->wanted);
    if (opened->facts() != known.facts) {
      throw sdk::Error(HR_DATA_CORRUPT,
                       known.place.path.string() + " has changed since this run opened it; start the run again");
    }
    if (selection_->keeps_frames())
      opened = std::make_unique<KeptFrames>(host_, known.place.path.string(), std::move(opened));
    return opened;
  });
}

}  // namespace spike_hdf5
