#include <algorithm>
#include <atomic>
#include <ctime>
#include <list>
#include <map>

#include "arrays/hdf5_child.hpp"
#include "arrays/hdf5_plan.hpp"
#include "mutex.hpp"

namespace headroom {

namespace {

constexpr size_t most_kept = 4096;              // plans that nobody holds
constexpr uint64_t most_kept_bytes = 16 << 20;  // of them
constexpr int64_t settled_s = 2;  // a file modified so recently may change again within one tick of its time stamp

uint64_t bytes_of(const ArrayPlan& plan) {
  return sizeof plan + plan.chunks.size() * sizeof(StoredChunk) + plan.layout.members.size() * sizeof(ArrayMember);
}

// Values that others own, by key. Expired entries are swept once the map has doubled: O(1) for each insertion.
template <class Key, class Value>
struct Known {
  std::map<Key, std::weak_ptr<Value>> entries;
  size_t sweep_at = 2 * most_kept;

  void forget_expired() {
    if (entries.size() < sweep_at) return;
    std::erase_if(entries, [](const auto& entry) { return entry.second.expired(); });
    sweep_at = 2 * std::max(most_kept, entries.size());
  }
};

// Plans and files are known as long as somebody holds them. Some plans are held here too, so that a source that opens
// and closes a dataset for every read does not plan it every time.
class ArrayPlans {
 public:
  // NULL where the plan has to be made. Throws where the file is still read in its earlier state.
  std::shared_ptr<const ArrayPlan> find(const std::string& path, const FileIdentity& file, const std::string& dataset) {
    const MutexLock lock(mutex_);
    forget_others(file);
    if (const auto used = file_of(file); used != nullptr && used->identity() != file) throw_changed(path);
    const auto found = plans_.entries.find({{file.device, file.inode}, dataset});
    if (found == plans_.entries.end()) return nullptr;
    auto plan = found->second.lock();
    if (plan == nullptr) plans_.entries.erase(found);
    return plan != nullptr && plan->file == file && as_they_are(plan->others) == plan->others ? plan : nullptr;
  }

  void add(const std::string& dataset, const std::shared_ptr<const ArrayPlan>& plan) {
    const MutexLock lock(mutex_);
    plans_.entries[{{plan->file.device, plan->file.inode}, dataset}] = plan;
    // Not kept: a plan that an unseen change may have made wrong, and one that would push out many others.
    if (std::time(nullptr) - plan->file.modified_s <= settled_s || bytes_of(*plan) > most_kept_bytes / 16) return;
    kept_.push_front(plan);
    kept_bytes_ += bytes_of(*plan);
    while (kept_.size() > most_kept || kept_bytes_ > most_kept_bytes) {
      kept_bytes_ -= bytes_of(*kept_.back());
      kept_.pop_back();
    }
    plans_.forget_expired();
  }

  std::shared_ptr<PlannedFile> share_file(const std::string& path, const FileIdentity& identity) {
    const MutexLock lock(mutex_);
    auto file = file_of(identity);
    if (file != nullptr && file->identity() != identity) throw_changed(path);
    std::weak_ptr<PlannedFile>& here = by_path_.entries[path];
    if (const auto used = here.lock(); used != nullptr && used->identity() != identity) throw_changed(path);
    if (file == nullptr) {
      file = std::make_shared<PlannedFile>(path, identity);
      files_.entries[{identity.device, identity.inode}] = file;
    }
    here = file;
    files_.forget_expired();
    by_path_.forget_expired();
    return file;
  }

 private:
  using FileKey = std::pair<uint64_t, uint64_t>;  // device, inode

  std::shared_ptr<PlannedFile> file_of(const FileIdentity& file) const REQUIRES(mutex_) {
    const auto found = files_.entries.find({file.device, file.inode});
    return found == files_.entries.end() ? nullptr : found->second.lock();
  }

  // Drops kept plans of earlier states of this file.
  void forget_others(const FileIdentity& file) REQUIRES(mutex_) {
    std::erase_if(kept_, [&](const auto& plan) {
      mutex_.is_held();
      const bool stale = plan->file.device == file.device && plan->file.inode == file.inode && plan->file != file;
      if (stale) kept_bytes_ -= bytes_of(*plan);
      return stale;
    });
  }

  Mutex mutex_;
  Known<std::pair<FileKey, std::string>, const ArrayPlan> plans_ GUARDED_BY(mutex_);
  Known<FileKey, PlannedFile> files_ GUARDED_BY(mutex_);
  Known<std::string, PlannedFile> by_path_ GUARDED_BY(mutex_);           // a replaced file has another key
  std::list<std::shared_ptr<const ArrayPlan>> kept_ GUARDED_BY(mutex_);  // made last: first
  uint64_t kept_bytes_ GUARDED_BY(mutex_) = 0;
};

ArrayPlans& plans() {
  static auto* plans = new ArrayPlans;
  return *plans;
}

}  // namespace

PlannedArray planned_array(const std::string& path, const std::string& dataset) {
  // Decoded chunks are cached by this number. It is never given twice, so no plan finds chunks of an earlier state.
  static std::atomic<uint64_t> next_id{0};
  const FileIdentity found = identify(path);
  auto plan = plans().find(path, found, dataset);
  if (plan == nullptr) {
    // Without the mutex: the child may take long. Two threads may plan the same dataset, and both plans are right.
    auto made =
        std::make_shared<ArrayPlan>(ask_hdf5({.kind = Hdf5Question::Kind::plan, .path = path, .object = dataset}).plan);
    if (made->file != found) throw_changed(path);
    made->others = as_they_are(std::move(made->others));
    made->id = next_id++;
    plan = std::move(made);
    plans().add(dataset, plan);
  }
  return {plan, plans().share_file(path, plan->file)};
}

}  // namespace headroom
