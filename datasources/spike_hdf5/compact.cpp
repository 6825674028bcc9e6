// headroom.convert/1: sequences of any layout in the compact form, uint8 frames and uint8 counts at native resolution.
#include <algorithm>
#include <cmath>

#include "spike_hdf5.hpp"

namespace spike_hdf5 {

namespace {

// Counts as they are; what is no whole number of [0, 255] is refused.
class CountReader {
 public:
  explicit CountReader(std::string name) : name_(std::move(name)) {}

  std::span<const uint8_t> read(Sequence& sequence, uint64_t frame, uint64_t first_bin, uint64_t bins,
                                Workspace& space) {
    const Size size = sequence.facts().native;
    const std::span<float> values = space.voxels(bins * size.pixels());
    sequence.read_voxel(frame, first_bin, bins, {0, 0, size}, as_they_are_, space, values.data());
    counts_.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      counts_[i] = static_cast<uint8_t>(std::clamp(values[i], 0.0f, 255.0f));
      if (static_cast<float>(counts_[i]) != values[i]) refuse(frame, first_bin, i, size, values[i]);
    }
    return counts_;
  }

 private:
  [[noreturn]] void refuse(uint64_t frame, uint64_t first_bin, std::size_t at, const Size& size, float value) const {
    const std::size_t pixel = at % size.pixels();
    bad_data(name_, "voxel[" + std::to_string(frame) + ", " + std::to_string(first_bin + at / size.pixels()) + ", " +
                        std::to_string(pixel / size.width) + ", " + std::to_string(pixel % size.width) + "] is " +
                        std::to_string(value) +
                        "; only whole counts from 0 to 255 can be stored without loss: convert " +
                        "the counts, not what was made of them, or leave the file as it is");
  }

  std::string name_;
  VoxelTransform as_they_are_{false, 0.0, 1.0};
  std::vector<uint8_t> counts_;
};

// Pixels [height, width, 3] of bytes.
class FrameReader {
 public:
  const std::vector<uint8_t>& read(Sequence& sequence, Image image, uint64_t frame, Workspace& space) {
    const Size size = sequence.facts().frame;
    planes_.resize(3 * size.pixels() * sequence.image_bytes());
    sequence.read_image(image, frame, {0, 0, size}, space, planes_.data());
    pixels_.resize(3 * size.pixels());
    if (sequence.facts().float_images) {
      gather(reinterpret_cast<const float*>(planes_.data()), size.pixels(),
             [](float value) { return static_cast<uint8_t>(std::lround(255.0f * std::clamp(value, 0.0f, 1.0f))); });
    } else {
      gather(reinterpret_cast<const uint8_t*>(planes_.data()), size.pixels(), [](uint8_t value) { return value; });
    }
    return pixels_;
  }

 private:
  template <class T, class Convert>
  void gather(const T* planes, std::size_t count, Convert&& convert) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t c = 0; c < 3; ++c) pixels_[3 * i + c] = convert(planes[c * count + i]);
    }
  }
  std::vector<std::byte> planes_;
  std::vector<uint8_t> pixels_;
};

void write_compact(const sdk::Host& host, Sequence& sequence, const Wanted& wanted, const std::string& name,
                   const std::filesystem::path& file) {
  const Facts& facts = sequence.facts();
  sdk::ArrayWriter writer(host, file);
  const auto dataset = [&](const char* of, std::vector<uint64_t> shape) {
    return writer.dataset({.dataset = of, .shape = std::move(shape), .dtype = sdk::u8});
  };
  const std::vector<uint64_t> images = {facts.frames, facts.frame.height, facts.frame.width, 3};
  const uint32_t blur = wanted.blur ? dataset("/blur", images) : 0, sharp = dataset("/sharp", images);
  const uint32_t voxel =
      facts.bins > 0 ? dataset("/voxel", {facts.frames, facts.bins, facts.native.height, facts.native.width}) : 0;
  Workspace space(host);
  FrameReader frames;
  CountReader counts(name);
  std::vector<uint8_t> of_frame;
  for (uint64_t t = 0; t < facts.frames; ++t) {
    host.throw_if_cancelled();
    if (wanted.blur) writer.append(blur, frames.read(sequence, Image::blur, t, space).data(), 1);
    writer.append(sharp, frames.read(sequence, Image::sharp, t, space).data(), 1);
    of_frame.clear();
    for (uint64_t first = 0; first < facts.bins; first += facts.bins_at_once) {
      const auto part = counts.read(sequence, t, first, std::min(facts.bins_at_once, facts.bins - first), space);
      of_frame.insert(of_frame.end(), part.begin(), part.end());
    }
    if (facts.bins > 0) writer.append(voxel, of_frame.data(), 1);
  }
  writer.commit();
}

}  // namespace

std::vector<sdk::Piece> SpikeSource::pieces(const sdk::Host& host, const sdk::Options& options,
                                            const std::filesystem::path& path) {
  std::vector<sdk::Piece> pieces;
  for (const SplitPlaces& split : find_sequences(host, layout_of(options.string("layout"), path), path)) {
    const std::string folder = split.name == "all" ? "" : split.name + "/";
    for (const Place& place : split.sequences) pieces.push_back({place.path, folder + place.name + ".hdf5"});
  }
  return pieces;
}

void SpikeSource::convert(const sdk::Host& host, const sdk::Options& options, const std::filesystem::path& path,
                          const std::filesystem::path& piece, const std::filesystem::path& file) {
  const Layout layout = layout_of(options.string("layout"), path);
  for (const SplitPlaces& split : find_sequences(host, layout, path)) {
    for (const Place& place : split.sequences) {
      if (place.path != piece) continue;
      const Wanted wanted = wanted_of(options, layout);
      const auto sequence = open_sequence(host, place, wanted);
      return write_compact(host, *sequence, wanted, place.path.string(), file);
    }
  }
  throw sdk::Error(HR_NOT_FOUND, piece.string() + " is no sequence of " + path.string() + " any more; start again");
}

}  // namespace spike_hdf5
