#include "data/normalized_copies.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include "arrays/array_session.hpp"
#include "arrays/hdf5_object.hpp"
#include "config/digest.hpp"
#include "config/user_cache.hpp"
#include "data/slots.hpp"
#include "headroom/sdk/error.hpp"
#include "memory/file_memory.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Say = std::function<void(const std::string&)>;

// Of progress in the log.
constexpr std::chrono::seconds between_lines{5};
constexpr int64_t bytes_compared = 64 << 20, most_compared = 8;  // samples of each split, and together

// The copies that are needed, by original file: of the fields for which the source names an origin.
class Needed {
 public:
  Needed(const Source& source, const Normalizer& normalizer) {
    for (const FieldStatistics& statistics : normalizer.statistics()) {
      for (uint32_t i = 0; i < source.fields().size(); ++i) {
        if (source.fields()[i].name == statistics.field) add(source, i, statistics);
      }
    }
  }

  std::vector<std::string> fields, without_origin;
  std::vector<NormalizedCopy> copies() const {
    std::vector<NormalizedCopy> all;
    for (const auto& entry : by_original_) all.push_back(entry.second);
    return all;
  }

 private:
  void add(const Source& source, uint32_t field, const FieldStatistics& statistics) {
    const std::vector<Origin> origins = source.origins(field);
    (origins.empty() ? without_origin : fields).push_back(statistics.field);
    for (const Origin& origin : origins) {
      NormalizedCopy& copy = by_original_[origin.path];
      copy.original = origin.path;
      const std::string dataset = absolute_name(origin.dataset);
      // One stored member can hold the values of one field only.
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
    // A copy of this state with other statistics may be in use by another run. Anything else there is replaced.
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
           time_text(std::chrono::duration<double>(Clock::now() - began_).count());
  }

 private:
  // A copy in memory (tmpfs) must not take what the run needs: it asks for room before every piece.
  fs::path write(const NormalizedCopy& copy, const fs::path& file) {
    Permit room = room_for_a_piece(file);
    int64_t written = 0;
    try {
      write_copy(copy, file, [&](uint64_t bytes) {
        written += static_cast<int64_t>(bytes);
        note_written(file, static_cast<int64_t>(bytes));
        // The old permit ends first: its bytes are counted as written.
        room = Permit();
        room = room_for_a_piece(file);
        say_written(bytes);
      });
    } catch (...) {  // nothing of it stays
      note_written(file, -written);
      throw;
    }
    return file;
  }

  static Permit room_for_a_piece(const fs::path& file) {
    Permit room = make_room_for_file(file, static_cast<int64_t>(copied_at_once_bytes));
    if (!room) throw sdk::Error(HR_IO, file.string() + " would lie in memory (tmpfs), where there is no room for it");
    return room;
  }

  void say_written(uint64_t bytes) {
    bytes_ += bytes;
    if (Clock::now() - said_ < between_lines) return;
    said_ = Clock::now();
    say_("normalised copies: file " + std::to_string(file_) + " of " + std::to_string(files_) + ", " +
         size_text(static_cast<int64_t>(bytes_)) + " written");
  }

  size_t files_, file_ = 0, made_ = 0;
  uint64_t bytes_ = 0;
  const Say& say_;
  Clock::time_point began_ = Clock::now(), said_ = began_;
};

uint64_t samples_compared(std::span<const Field> fields) {
  int64_t sample_bytes = 0;
  for (const Field& field : fields) sample_bytes += field.bytes();
  // At least two, since every other one is read augmented.
  return static_cast<uint64_t>(
      std::clamp<int64_t>(bytes_compared / std::max<int64_t>(sample_bytes, 1), 2, most_compared));
}

// A digest of some samples of every split, augmented and not, standardised: equal with and without copies, or the
// copies are not used.
std::string samples_of(const Source& source, const Normalizer& left_to_apply) {
  Digest digest;
  const uint64_t most = samples_compared(source.fields());
  Slot slot(source.fields(), 1);
  Reader reader = source.reader();
  for (uint32_t split = 0; split < source.splits().size(); ++split) {
    const uint64_t length = source.length(split);
    for (uint64_t i = 0; i < std::min(length, most); ++i) {
      const uint64_t index = i * (length - 1) / std::max<uint64_t>(most - 1, 1), key = 1 + i;
      const auto tensors = slot.tensors(0, 1);
      try {
        reader.read(split, {&index, 1}, {&key, 1}, /*augment=*/i % 2 == 1, tensors);
      } catch (const BadSample&) {
        // It has to be as unreadable with the copies.
        digest.add("bad");
        continue;
      }
      left_to_apply.apply(source.fields(), tensors);
      for (size_t field = 0; field < tensors.size(); ++field)
        digest.add(
            {static_cast<const char*>(tensors[field].data), static_cast<size_t>(source.fields()[field].bytes())});
    }
  }
  return digest.hex();
}

std::vector<Substitute> make(const std::vector<NormalizedCopy>& wanted, Copies& copies) {
  std::vector<Substitute> substitutes;
  for (const NormalizedCopy& copy : wanted) {
    const std::string place = copies.place_of(copy).string();
    for (const StandardisedMember& member : copy.members) substitutes.push_back({copy.original, member.dataset, place});
  }
  return substitutes;
}

NormalizedCopies try_copies(const std::shared_ptr<const Source>& source, const Normalizer& normalizer,
                            const std::function<std::shared_ptr<const Source>()>& reopen, const Say& say) {
  NormalizedCopies result{source, {}, {}};
  const Needed needed(*source, normalizer);
  for (const std::string& field : needed.without_origin) {
    result.lines.push_back("normalised copies: none of field '" + field + "', which datasource '" + source->id() +
                           "' does not deliver as it is stored");
  }
  const std::vector<NormalizedCopy> wanted = needed.copies();
  if (wanted.empty()) return result;
  // Before any substitute is set: from the originals.
  const std::string expected = samples_of(*source, normalizer);
  Copies copies(wanted.size(), say);
  arrays_of(source->session())->substitute(make(wanted, copies));
  const Normalizer left = normalizer.without(needed.fields);
  // A source that opened its arrays early still reads the originals, so it is opened again.
  if (samples_of(*source, left) != expected && samples_of(*(result.source = reopen()), left) != expected) {
    throw sdk::Error(HR_INTERNAL, "datasource '" + source->id() +
                                      "' makes other values of them: a bug of the plugin, which says that it "
                                      "delivers what is stored");
  }
  result.fields = needed.fields;
  result.lines.push_back("normalised copies: " + copies.summary());
  return result;
}

NormalizedCopies none_used(std::shared_ptr<const Source> source, const std::string& why) {
  arrays_of(source->session())->substitute({});
  return {std::move(source), {}, {"normalised copies: not used, " + why}};
}

}  // namespace

NormalizedCopies use_normalized_copies(std::shared_ptr<const Source> source, const Normalizer& normalizer,
                                       const std::function<std::shared_ptr<const Source>()>& reopen, const Say& say) {
  try {
    return try_copies(source, normalizer, reopen, say);
  } catch (const sdk::Error& problem) {
    return none_used(std::move(source), problem.what());
  } catch (const Error& problem) {
    return none_used(std::move(source), problem.what());
  }
}

}  // namespace headroom
