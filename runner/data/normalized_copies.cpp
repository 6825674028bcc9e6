#include "data/normalized_copies.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include "config/digest.hpp"
#include "config/user_cache.hpp"
#include "data/hdf5_object.hpp"
#include "data/normalized_copy.hpp"
#include "data/substitutes.hpp"
#include "headroom/sdk/error.hpp"
#include "memory/size_text.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Say = std::function<void(const std::string&)>;

constexpr std::chrono::seconds between_lines{5};

// The copies needed, by original, of the fields whose origins the source tells.
class Needed {
 public:
  Needed(const Source& source, const Normalizer& normalizer) {
    for (const FieldStatistics& statistics : normalizer.statistics()) {
      for (uint32_t i = 0; i < source.fields().size(); ++i) {
        if (source.fields()[i].name == statistics.field) add(source, i, statistics);
      }
    }
  }

  std::vector<std::string> fields, untold;
  std::vector<NormalizedCopy> copies() const {
    std::vector<NormalizedCopy> all;
    for (const auto& entry : by_original_) all.push_back(entry.second);
    return all;
  }

 private:
  void add(const Source& source, uint32_t field, const FieldStatistics& statistics) {
    const std::vector<Origin> origins = source.origins(field);
    (origins.empty() ? untold : fields).push_back(statistics.field);
    for (const Origin& origin : origins) {
      NormalizedCopy& copy = by_original_[origin.path];
      copy.original = origin.path;
      const std::string dataset = absolute_name(origin.dataset);
      for (const StandardisedMember& other : copy.members) {
        if (other.dataset == dataset && other.member == origin.member) {
          throw sdk::Error(HR_UNSUPPORTED, "datasource '" + source.id() + "' makes more than one field of '" +
                                               origin.member + "' of " + dataset + " of " + origin.path);
        }
      }
      copy.members.push_back({dataset, origin.member, statistics, source.fields()[field].dtype.bits == 32});
    }
  }

  std::map<std::string, NormalizedCopy> by_original_;
};

fs::path beside(const NormalizedCopy& copy) { return copy.original + std::string(copy_suffix); }

fs::path in_cache(const CopyMark& mark) {
  const fs::path folder = user_cache("normalized");
  return folder.empty() ? folder : folder / (Digest().add(mark.original).add(mark.statistics).hex() + ".h5");
}

// Finds or makes the copies, one after the other.
class Copies {
 public:
  Copies(size_t files, const Say& say) : files_(files), say_(say) {}

  fs::path place_of(const NormalizedCopy& copy) {
    const CopyMark mark = mark_of(copy), found = mark_in(beside(copy));
    ++file_;
    if (found == mark) return beside(copy);
    const fs::path cached = in_cache(mark);
    if (!cached.empty() && mark_in(cached) == mark) return cached;
    ++made_;
    if (found.original != mark.original) {
      try {
        return write(copy, beside(copy));
      } catch (const sdk::Error& problem) {
        if (problem.status() != HR_IO || cached.empty()) throw;
      }
    }
    if (cached.empty()) throw sdk::Error(HR_IO, "there is no place for it: set HOME or XDG_CACHE_HOME");
    std::error_code ignored;
    fs::create_directories(cached.parent_path(), ignored);
    return write(copy, cached);
  }

  std::string summary() const {
    if (made_ == 0) return std::to_string(files_) + " files as they were left by an earlier run";
    return std::to_string(made_) + " of " + std::to_string(files_) + " files written, " +
           size_text(static_cast<int64_t>(bytes_)) + " in " +
           std::to_string(std::chrono::duration<double>(Clock::now() - began_).count()).substr(0, 4) + " s";
  }

 private:
  fs::path write(const NormalizedCopy& copy, const fs::path& file) {
    write_copy(copy, file, [this](uint64_t bytes) {
      bytes_ += bytes;
      if (Clock::now() - said_ < between_lines) return;
      said_ = Clock::now();
      say_("normalised copies: file " + std::to_string(file_) + " of " + std::to_string(files_) + ", " +
           size_text(static_cast<int64_t>(bytes_)) + " written");
    });
    return file;
  }

  size_t files_, file_ = 0, made_ = 0;
  uint64_t bytes_ = 0;
  const Say& say_;
  Clock::time_point began_ = Clock::now(), said_ = began_;
};

}  // namespace

NormalizedCopies use_normalized_copies(const Source& source, const Normalizer& normalizer, const Say& say) {
  NormalizedCopies result;
  try {
    const Needed needed(source, normalizer);
    for (const std::string& field : needed.untold) {
      result.lines.push_back("normalised copies: none of field '" + field + "', which datasource '" + source.id() +
                             "' does not deliver as it is stored");
    }
    const std::vector<NormalizedCopy> wanted = needed.copies();
    if (wanted.empty()) return result;
    Copies copies(wanted.size(), say);
    std::vector<Substitute> substitutes;
    for (const NormalizedCopy& copy : wanted) {
      const fs::path place = copies.place_of(copy);
      for (const StandardisedMember& member : copy.members)
        substitutes.push_back({copy.original, member.dataset, place.string()});
    }
    substitute_arrays(std::move(substitutes));
    result.fields = needed.fields;
    result.lines.push_back("normalised copies: " + copies.summary());
  } catch (const sdk::Error& problem) {
    result.lines.push_back(std::string("normalised copies: not used, ") + problem.what());
  }
  return result;
}

void forget_normalized_copies() { substitute_arrays({}); }

}  // namespace headroom
