// Frames of a video, which ffmpeg decodes: the dataset "frames" [frames, height, width, 3].
#pragma once

#include <filesystem>

#include "imports/import_file.hpp"

namespace headroom {

// Every frame once, as it is stored: none is repeated or dropped for a steady rate.
Imported import_video(const std::filesystem::path& from, ImportTarget& target, const ImportProgress& progress);

}  // namespace headroom
