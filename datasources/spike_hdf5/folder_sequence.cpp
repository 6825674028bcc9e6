#include "folder_sequence.hpp"

#include <algorithm>

#include "png.hpp"

namespace spike_hdf5 {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBins = 32;  // where num_bins leaves it open
constexpr uint64_t kMostCount = 255;

std::vector<fs::path> files_of(const sdk::Host& host, const fs::path& folder, const char* extension) {
  std::vector<fs::path> files;
  for (const sdk::Entry& entry : host.list_folder(folder)) {
    fs::path file = folder / entry.name;
    if (!entry.is_container && file.extension() == extension) files.push_back(std::move(file));
  }
  return files;
}

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

FolderSequence::FolderSequence(const sdk::Host& host, const Folders& folders, const Wanted& wanted)
    : host_(host), camera_(wanted.camera), folder_(folders.blur), blur_(files_of(host, folders.blur, ".png")) {
  if (blur_.empty()) bad_data(folders.blur, "no frame (*.png) lies there; take the sequence out");
  facts_.frames = blur_.size();
  Workspace space(host);
  blame(blur_.front(), [&] { facts_.frame = png_size(read_file(host, blur_.front(), space)); });
  if (wanted.sharp) sharp_ = files_like_blur(folders.sharp, ".png");
  if (!wanted.voxel) return;
  spikes_ = files_like_blur(folders.spikes, ".dat");
  describe_spikes(wanted.bins);
}

void FolderSequence::describe_spikes(uint64_t wanted_bins) {
  facts_.bins = facts_.bins_at_once = wanted_bins != 0 ? wanted_bins : kBins;
  facts_.native = camera_.size;
  if (facts_.frame.height % camera_.size.height != 0 || facts_.frame.width % camera_.size.width != 0) {
    sdk::invalid("spike frames of " + shown(camera_.size) +
                 " (spike_height, spike_width) do not divide the frames of " + shown(facts_.frame) + " in " +
                 folder_.string() + "; set them to the camera's");
  }
  for (const fs::path& file : spikes_) {
    const uint64_t frames = middle(spike_frames(camera_, file, host_.file_size(file))).second / camera_.frame_bytes();
    if ((frames + facts_.bins - 1) / facts_.bins <= kMostCount) continue;
    sdk::invalid(file.string() + " has " + std::to_string(frames) + " spike frames for num_bins = " +
                 std::to_string(facts_.bins) + "; a bin holds 255 at most: raise num_bins or lower spike_frames");
  }
}

// The files of another folder, which must have the same names as the blurred frames.
std::vector<fs::path> FolderSequence::files_like_blur(const fs::path& folder, const char* extension) const {
  std::vector<fs::path> files = files_of(host_, folder, extension);
  for (std::size_t i = 0; i < std::max(files.size(), blur_.size()); ++i) {
    if (i < files.size() && i < blur_.size() && files[i].stem() == blur_[i].stem()) continue;
    const bool missing = i >= files.size() || (i < blur_.size() && blur_[i].stem() < files[i].stem());
    const fs::path lone = missing ? blur_[i] : files[i];
    const fs::path other =
        missing ? folder / (lone.stem().string() + extension) : folder_ / (lone.stem().string() + ".png");
    bad_data(lone, "it has no " + other.string() + " beside it; add it, or take the frame out");
  }
  return files;
}

std::pair<uint64_t, uint64_t> FolderSequence::middle(uint64_t frames) const {
  const uint64_t wanted = camera_.most_frames == 0 ? frames : std::min(camera_.most_frames, frames);
  return {(frames - wanted) / 2 * camera_.frame_bytes(), wanted * camera_.frame_bytes()};
}

std::vector<fs::path> FolderSequence::files() const {
  std::vector<fs::path> files = blur_;
  files.insert(files.end(), sharp_.begin(), sharp_.end());
  files.insert(files.end(), spikes_.begin(), spikes_.end());
  return files;
}

void FolderSequence::read_image(Image image, uint64_t frame, const Box& box, Workspace& space, std::byte* planes) {
  const fs::path& file = (image == Image::blur ? blur_ : sharp_)[frame];
  const std::span<const std::byte> bytes = read_file(host_, file, space);
  blame(file, [&] { decode_png(bytes, facts_.frame, box, reinterpret_cast<uint8_t*>(planes)); });
}

// All bins come out of one pass over the stream.
std::span<const uint8_t> FolderSequence::read_counts(uint64_t frame, uint64_t, uint64_t bins, const Box& box,
                                                     Workspace& space) {
  const fs::path& file = spikes_[frame];
  const auto [offset, bytes] = middle(spike_frames(camera_, file, host_.file_size(file)));
  const std::span<std::byte> stream = space.file(bytes);
  host_.pread(file, offset, stream);
  return count_spikes(camera_, stream, bins, box, space.raw<uint8_t>(counting_bytes(bins, box)));
}

}  // namespace spike_hdf5
