#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <sys/stat.h>

#include "arrays/array_session.hpp"
#include "arrays/open_files.hpp"
#include "config/digest.hpp"
#include "config/user_cache.hpp"
#include "data/normalizer.hpp"
#include "headroom/sdk/error.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// In the file's name and in its contents: statistics of another format are measured again.
constexpr int format = 1;

// The file that keeps the statistics of such a request. Identities of data files are in its contents and not in its
// name, so that new statistics replace those of an earlier state.
fs::path sidecar_of(const StatisticsRequest& request) {
  Json what = {format, request.source.id(), request.content_id, request.reads_as, request.mode};
  // Only for the mode that uses it, so that another limit finds the same "exact" statistics.
  if (request.mode == "sampled") what.push_back(request.max_samples);
  what.push_back(request.skip_bad_samples);
  what.push_back(request.train.source_split());
  for (const Group& group : request.train.groups()) what.push_back({group.first, group.count});
  for (const Field& field : request.source.fields()) what.push_back({field.name, field.channel_axis, field.normalize});
  const fs::path folder = user_cache("statistics");
  return folder.empty() ? folder : folder / (Digest().add(what.dump()).hex() + ".json");
}

// The source's files, and those that datasets of them have values in.
std::vector<fs::path> all_files_of(const Source& source) {
  std::vector<fs::path> files = source.files();
  if (source.session().arrays == nullptr) return files;
  std::error_code unknown;
  for (const fs::path other : source.session().arrays->other_files()) {
    // A virtual dataset may do without some of its files.
    if (fs::exists(other, unknown)) files.push_back(other);
  }
  return files;
}

// A digest of the identities of the source's files. "" where it names none, or stat() fails: then nothing is kept.
std::string identity_of(const Source& source) {
  if (source.files().empty()) return "";
  Json all;
  try {
    for (const fs::path& file : all_files_of(source)) {
      const FileIdentity identity = identify(file.string());
      all.push_back({identity.device, identity.inode, identity.size_bytes, identity.modified_s, identity.modified_ns});
    }
  } catch (const sdk::Error&) {
    return "";
  }
  return Digest().add(all.dump()).hex();
}

// Notes name files, whose names need not be UTF-8: dump() alone would throw at them.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json contents(const std::string& identity, const Normalizer& normalizer, const MeasurementNotes& notes) {
  Json json = {{"format", format}, {"files", identity}, {"statistics", normalizer.to_json()}, {"notes", notes}};
  // Of all that is before it, so that a damaged file does not match.
  json["check"] = Digest().add(text_of(json)).hex();
  return json;
}

// Whether these are finite statistics of exactly the fields that the source wants standardised.
bool is_usable(const Normalizer& normalizer, const Source& source) {
  size_t found = 0;
  for (const Field& field : source.fields()) {
    if (!field.normalize) continue;
    if (found == normalizer.statistics().size()) return false;
    const FieldStatistics& statistics = normalizer.statistics()[found++];
    const int64_t channels = field.channel_axis < 0 ? 1 : field.shape[static_cast<size_t>(field.channel_axis)];
    if (statistics.field != field.name || statistics.mean.size() != static_cast<size_t>(channels)) return false;
    for (const double mean : statistics.mean) {
      if (!std::isfinite(mean)) return false;
    }
    for (const double std : statistics.std) {
      if (!std::isfinite(std) || std < 0) return false;
    }
  }
  return found == normalizer.statistics().size();
}

struct Kept {
  Normalizer normalizer;
  MeasurementNotes notes;
};

std::optional<Kept> read_sidecar(const fs::path& sidecar, const std::string& identity, const Source& source) {
  std::ifstream file(sidecar);
  if (!file) return std::nullopt;
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  try {
    Kept kept{Normalizer::from_json(json.at("statistics")), json.at("notes").get<MeasurementNotes>()};
    // Built anew from what was read and compared as a whole: format, files and check at once.
    if (json != contents(identity, kept.normalizer, kept.notes) || !is_usable(kept.normalizer, source))
      return std::nullopt;
    return kept;
  } catch (const std::exception&) {  // damaged, or of another format: measure again
    return std::nullopt;
  }
}

std::string samples_text(const StatisticsRequest& request) {
  const uint64_t all = request.train.length();
  const auto most = static_cast<uint64_t>(std::max<int64_t>(request.max_samples, 1));
  if (request.mode == "exact" || most >= all) return "all " + std::to_string(all) + " training samples";
  return std::to_string(most) + " evenly spaced of " + std::to_string(all) + " training samples";
}

}  // namespace

FoundStatistics find_statistics(const StatisticsRequest& request) {
  FoundStatistics found;
  const auto began = std::chrono::steady_clock::now();
  const std::string identity = request.mode == "off" ? "" : identity_of(request.source);
  const fs::path sidecar = identity.empty() ? fs::path() : sidecar_of(request);
  MeasurementNotes notes;
  if (auto kept = sidecar.empty() ? std::nullopt : read_sidecar(sidecar, identity, request.source)) {
    found.kept = true;
    found.normalizer = std::move(kept->normalizer);
    notes = std::move(kept->notes);
  } else {
    found.normalizer = Normalizer::measure(request.source, request.train, request.mode, request.max_samples,
                                           request.skip_bad_samples, &notes);
  }
  if (found.normalizer.statistics().empty()) return found;
  if (!found.kept && !sidecar.empty())
    keep_in_cache(sidecar, text_of(contents(identity, found.normalizer, notes)) + "\n");
  found.lines.push_back(
      "normalisation: mean and deviation of " + samples_text(request) +
      (found.kept ? ", measured before on the same files"
                  : ", measured in " +
                        time_text(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count())));
  for (const std::string& note : notes) found.lines.push_back("normalisation: " + note);
  return found;
}

// --- the content id ---

namespace {

constexpr uint64_t edge_bytes = 64 << 10;

// 128 bits against accidents, not against attackers: two lanes of multiply and fold over 8-byte words.
class Hash {
 public:
  void add(const void* data, uint64_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (; bytes >= 8; at += 8, bytes -= 8) word(load(at, 8));
    if (bytes > 0) word(load(at, bytes));
  }
  void add(uint64_t value) { word(value); }
  void add(std::string_view text) {  // with its length, so that neighbours never run together
    word(text.size());
    add(text.data(), text.size());
  }
  std::string hex() {
    // Spreads the last words over all bits of both lanes.
    for (int i = 0; i < 4; ++i) word(0);
    std::string digits;
    for (const uint64_t lane : lanes_) {
      for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[lane >> shift & 15];
    }
    return digits;
  }

 private:
  static uint64_t load(const unsigned char* at, uint64_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, at, bytes);
    return value;
  }
  void word(uint64_t value) {
    lanes_[0] = fold((lanes_[0] ^ value) * 0x9E3779B97F4A7C15u);
    lanes_[1] = fold((lanes_[1] + value) * 0xC2B2AE3D27D4EB4Fu ^ lanes_[0]);
  }
  static uint64_t fold(uint64_t value) { return value ^ value >> 29; }

  // "headroom" and "content1" in ASCII.
  std::array<uint64_t, 2> lanes_{0x68656164726F6F6Du, 0x636F6E74656E7431u};
};

[[noreturn]] void cannot_read(const std::string& path) {
  throw Error(Exit::data, "data",
              "cannot read '" + path + "': " + std::strerror(errno) + "; check the path and its permissions");
}

void add_part(Hash& hash, int file, const std::string& path, uint64_t offset, uint64_t bytes) {
  std::vector<char> part(bytes);
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t got = pread(file, part.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(path);
    if (got == 0)
      throw Error(Exit::data, "data", "'" + path + "' became shorter while it was read; start the run again");
    done += static_cast<uint64_t>(got);
  }
  hash.add(part.data(), bytes);
}

void add_file(Hash& hash, const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found;
  if (file.get() < 0 || fstat(file.get(), &found) != 0) cannot_read(path.string());
  const auto size = static_cast<uint64_t>(found.st_size);
  hash.add(size);
  add_part(hash, file.get(), path.string(), 0, std::min(size, edge_bytes));
  // The last 64 KiB, less what the first part has already.
  if (size > edge_bytes)
    add_part(hash, file.get(), path.string(), size - std::min(size - edge_bytes, edge_bytes),
             std::min(size - edge_bytes, edge_bytes));
}

// The folder all files lie in.
std::filesystem::path common_folder(const std::vector<std::filesystem::path>& files) {
  std::filesystem::path common = files.front().parent_path();
  for (const auto& file : files) {
    const auto differs = std::mismatch(common.begin(), common.end(), file.begin(), file.end()).first;
    std::filesystem::path shared;
    for (auto part = common.begin(); part != differs; ++part) shared /= *part;
    common = shared;
  }
  return common;
}

void add_field(Hash& hash, const Field& field) {
  hash.add(field.name);
  hash.add(dtype_name(field.dtype));
  hash.add(field.shape.size());
  for (const int64_t extent : field.shape) hash.add(static_cast<uint64_t>(extent));
}

}  // namespace

std::string content_id(const Source& source) {
  Hash hash;
  for (const Field& field : source.fields()) add_field(hash, field);
  auto files = all_files_of(source);
  for (auto& file : files) file = std::filesystem::absolute(file).lexically_normal();
  // The order in which the source names its files does not count.
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  if (files.empty()) return hash.hex();
  const std::filesystem::path folder = common_folder(files);
  for (const auto& file : files) {
    hash.add(file.lexically_relative(folder).generic_string());
    add_file(hash, file);
  }
  return hash.hex();
}
}  // namespace headroom
