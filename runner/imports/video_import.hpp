// Imports the frames of a video, which ffmpeg decodes, as the dataset "frames" [frames, height, width, 3].
#pragma once

#include <filesystem>

#include "imports/import_file.hpp"

namespace headroom {

// Takes every stored frame once; none is repeated or dropped for a constant rate.
Imported import_video(const std::filesystem::path& from, ImportTarget& target, const ImportProgress& progress);

}  // namespace headroom
