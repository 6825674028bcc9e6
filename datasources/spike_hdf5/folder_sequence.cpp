#include "folder_sequence.hpp"

#include <algorithm>

#include "png.hpp"

namespace spike_hdf5 {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBins = 32;  // where num_bins leaves it open
constexpr uint64_t kMostCount = 255;

std::span<const std::byte> read_file(const sdk::Host& host, const fs::path& file, Workspace& space) {
  const std::span<std::byte> bytes = space.file(host.file_size(file));
  host.pread(file, 0, bytes);
  return bytes;
}

template <class Decode>
void blame(const fs::path& file, Decode&& decode) {
  try {
    decode();
  } catch (const BadPng& problem) {
    throw sdk::Error(HR_DATA_CORRUPT,
                     file.string() + " " + problem.what() + "; copy it again or take the sequence out");
  }
}

}  // namespace

FolderSequence::FolderSequence(const sdk::Host& host, FrameFiles files, const Wanted& wanted)
    : host_(host), camera_(wanted.camera), files_(std::move(files)) {
  facts_.frames = std::max(images().size(), files_.spikes.size());
  describe_images(wanted.like);
  if (wanted.voxel) describe_spikes(wanted.bins);
}

// Where options leave the camera's size open, it is that of the images.
void FolderSequence::describe_images(const Facts& like) {
  const auto complete = [&](const Size& otherwise) {
    if (camera_.size.height == 0) camera_.size.height = otherwise.height;
    if (camera_.size.width == 0) camera_.size.width = otherwise.width;
  };
  if (images().empty()) {
    complete(like.native);
    facts_.frame = frame_like(like, camera_.size);
    return;
  }
  const fs::path& image = images().front();
  Workspace space(host_);
  blame(image, [&] { facts_.frame = png_size(read_file(host_, image, space)); });
  complete(facts_.frame);
}

void FolderSequence::describe_spikes(uint64_t wanted_bins) {
  facts_.bins = facts_.bins_at_once = wanted_bins != 0 ? wanted_bins : kBins;
  facts_.native = camera_.size;
  if (facts_.frame.height % camera_.size.height != 0 || facts_.frame.width % camera_.size.width != 0) {
    sdk::invalid("spike frames of " + shown(camera_.size) +
                 " (spike_height, spike_width) do not divide the frames of " + shown(facts_.frame) + " in " +
                 images().front().string() + "; set them to the camera's");
  }
  if (camera_.size.width % 8 != 0) {
    sdk::invalid("the frames of " + images().front().string() + " are " + std::to_string(camera_.size.width) +
                 " pixels wide, no multiple of 8 as a row of a spike stream is; set spike_width to the camera's");
  }
  for (const fs::path& file : files_.spikes) {
    const uint64_t frames = counted_part(camera_, file, host_.file_size(file)).frames;
    if ((frames + facts_.bins - 1) / facts_.bins <= kMostCount) continue;
    sdk::invalid(file.string() + " has " + std::to_string(frames) + " spike frames for num_bins = " +
                 std::to_string(facts_.bins) + "; a bin holds 255 at most: raise num_bins or lower spike_frames");
  }
}

std::vector<fs::path> FolderSequence::files() const {
  std::vector<fs::path> files = files_.blur;
  files.insert(files.end(), files_.sharp.begin(), files_.sharp.end());
  files.insert(files.end(), files_.spikes.begin(), files_.spikes.end());
  return files;
}

void FolderSequence::read_image(Image image, uint64_t frame, const Box& box, Workspace& space, std::byte* planes) {
  const fs::path& file = (image == Image::blur ? files_.blur : files_.sharp)[frame];
  const std::span<const std::byte> bytes = read_file(host_, file, space);
  blame(file, [&] { decode_png(bytes, facts_.frame, box, reinterpret_cast<uint8_t*>(planes)); });
}

// All bins come out of one pass over the stream.
std::span<const uint8_t> FolderSequence::read_counts(uint64_t frame, uint64_t, uint64_t bins, const Box& box,
                                                     Workspace& space) {
  const fs::path& file = files_.spikes[frame];
  const StreamPart part = counted_part(camera_, file, host_.file_size(file));
  const std::span<std::byte> stream = space.file(part.frames * camera_.frame_bytes());
  host_.pread(file, part.first * camera_.frame_bytes(), stream);
  return count_spikes(camera_, stream, bins, box, space.raw<uint8_t>(counting_bytes(bins, box)));
}

}  // namespace spike_hdf5
