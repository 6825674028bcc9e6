#include "data/kept_statistics.hpp"

#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "arrays/file_identity.hpp"
#include "config/digest.hpp"
#include "config/user_cache.hpp"
#include "headroom/sdk/error.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int format = 1;

// Where the statistics of such a request are kept. The files' identities are inside: changed files replace theirs.
fs::path sidecar_of(const StatisticsRequest& request) {
  Json what = {format, request.source.id(), request.content_id, request.reads_as, request.mode};
  if (request.mode == "sampled") what.push_back(request.max_samples);
  what.push_back(request.skip_bad_samples);
  what.push_back(request.train.source_split());
  for (const Group& group : request.train.groups()) what.push_back({group.first, group.count});
  for (const Field& field : request.source.fields()) what.push_back({field.name, field.channel_axis, field.normalize});
  const fs::path folder = user_cache("statistics");
  return folder.empty() ? folder : folder / (Digest().add(what.dump()).hex() + ".json");
}

// Of the files the source reads; "" where it names none, or one cannot be looked at: then nothing is kept.
std::string identity_of(const Source& source) {
  const std::vector<fs::path> files = source.files();
  if (files.empty()) return "";
  Json all;
  try {
    for (const fs::path& file : files) {
      const FileIdentity identity = identify(file.string());
      all.push_back({identity.device, identity.inode, identity.size_bytes, identity.modified_s, identity.modified_ns});
    }
  } catch (const sdk::Error&) {
    return "";
  }
  return Digest().add(all.dump()).hex();
}

Json contents(const std::string& identity, const Normalizer& normalizer, const MeasurementNotes& notes) {
  Json json = {{"format", format}, {"files", identity}, {"statistics", normalizer.to_json()}, {"notes", notes}};
  json["check"] = Digest().add(json.dump()).hex();
  return json;
}

// Whether these are statistics of just the fields the source wants standardised.
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
    if (json != contents(identity, kept.normalizer, kept.notes) || !is_usable(kept.normalizer, source))
      return std::nullopt;
    return kept;
  } catch (const std::exception&) {  // damaged, or of another version
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
    keep_in_cache(sidecar, contents(identity, found.normalizer, notes).dump() + "\n");
  found.lines.push_back(
      "normalisation: mean and deviation of " + samples_text(request) +
      (found.kept ? ", measured before on the same files"
                  : ", measured in " +
                        time_text(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count())));
  for (const std::string& note : notes) found.lines.push_back("normalisation: " + note);
  return found;
}

}  // namespace headroom
