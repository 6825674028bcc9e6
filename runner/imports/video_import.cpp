#include "imports/video_import.hpp"

#include <charconv>
#include <optional>

#include "memory/tool_output.hpp"

namespace headroom {

namespace {

constexpr uint64_t largest_side = 32768;

struct FrameSize {
  uint64_t width = 0, height = 0;
  bool operator==(const FrameSize&) const = default;
};

// The head of a frame in ffmpeg's PPM: P6, width and height, 255, a line each. nullopt at the end.
std::optional<FrameSize> next_frame(ToolOutput& ffmpeg) {
  const auto magic = ffmpeg.line();
  if (!magic) return std::nullopt;
  const std::string sides = ffmpeg.line().value_or(""), most = ffmpeg.line().value_or("");
  FrameSize size;
  const char* end = sides.data() + sides.size();
  const auto width = std::from_chars(sides.data(), end, size.width);
  const auto height = width.ptr < end ? std::from_chars(width.ptr + 1, end, size.height) : width;
  const bool whole = height.ptr == end && most == "255" && *magic == "P6";
  if (!whole || size.width == 0 || size.height == 0 || size.width > largest_side || size.height > largest_side)
    throw sdk::Error(HR_DATA_CORRUPT, "ffmpeg does not give whole pictures of it");
  return size;
}

std::string how_it_ended(ToolOutput& ffmpeg) {
  const int code = ffmpeg.wait();
  const std::string complaint = ffmpeg.complaint();
  if (code == 0 && complaint.empty()) return "";
  return "ffmpeg cannot decode it to its end: " +
         (complaint.empty() ? "it ended with exit code " + std::to_string(code) : complaint) +
         "; write what can be decoded again (ffmpeg -i FILE again.mkv), and convert that";
}

}  // namespace

Imported import_video(const std::filesystem::path& from, ImportTarget& target, const ImportProgress& progress) {
  // "file:", or a name with a colon would be a protocol.
  ToolOutput ffmpeg({"ffmpeg", "-v", "error", "-nostdin", "-xerror", "-i", "file:" + from.string(), "-map", "0:v:0",
                     "-fps_mode", "passthrough", "-f", "image2pipe", "-c:v", "ppm", "-pix_fmt", "rgb24", "-"},
                    "data convert",
                    "videos are decoded by ffmpeg, which is not in PATH: install it (apt-get install ffmpeg), and run "
                    "the same command again");
  FrameSize first;
  uint32_t id = 0;
  uint64_t frames = 0;
  std::vector<std::byte> frame;
  while (const auto size = next_frame(ffmpeg)) {
    if (frames == 0) {
      first = *size;
      id = target.dataset({"frames", {kDLUInt, 8, 1}, {0, first.height, first.width, 3}});
      frame.resize(first.height * first.width * 3);
    }
    if (*size != first) {
      throw sdk::Error(HR_UNSUPPORTED, "its frame " + std::to_string(frames) +
                                           " has another size than those before; scale them to one first (ffmpeg -vf)");
    }
    if (ffmpeg.read(frame) < frame.size()) break;  // ffmpeg's end tells why
    target.append(id, frame, 1);
    progress(++frames * frame.size(), 0);
  }
  if (const std::string problem = how_it_ended(ffmpeg); !problem.empty()) throw sdk::Error(HR_DATA_CORRUPT, problem);
  if (frames == 0) throw sdk::Error(HR_DATA_CORRUPT, "it has no frames");
  return {target.datasets()};
}

}  // namespace headroom
