#include "arrays/array_session.hpp"

#include <algorithm>
#include <spdlog/spdlog.h>

#include "arrays/box.hpp"
#include "arrays/file_map.hpp"
#include "arrays/hdf5_file.hpp"
#include "arrays/hdf5_object.hpp"
#include "headroom/sdk/shape_text.hpp"
#include "memory/readable.hpp"

namespace headroom {

const std::shared_ptr<ArraySession>& ArraySession::of_process() {
  static const auto* session = new auto(std::make_shared<ArraySession>());  // arrays may be read until the process ends
  return *session;
}

void ArraySession::set_chunk_cache_limit(int64_t bytes) {
  chunks_->set_limit(bytes > 0 ? static_cast<uint64_t>(bytes) : 0);
  // libhdf5's own caches count against the limit and can only be freed by closing files.
  const Hdf5Lock lock;
  Hdf5File::close_overdrawn(*chunks_);
}

void ArraySession::map_files(bool wanted) {
  if (wanted) handle_bus_errors();
  maps_files_ = wanted;
}

void ArraySession::substitute(std::vector<Substitute> substitutes) {
  // The earlier ones end in `files`, which outlives the lock.
  std::map<std::pair<std::string, std::string>, std::string> files;
  for (Substitute& substitute : substitutes) {
    files[{std::move(substitute.path), absolute_name(substitute.dataset)}] = std::move(substitute.file);
  }
  const MutexLock lock(mutex_);
  substitutes_.swap(files);
}

std::string ArraySession::file_of(const std::string& path, const std::string& dataset) const {
  const MutexLock lock(mutex_);
  if (substitutes_.empty()) return path;
  const auto found = substitutes_.find({path, absolute_name(dataset)});
  return found == substitutes_.end() ? path : found->second;
}

void ArraySession::note_opened(const ArrayPlan& plan, const std::string& name) {
  const StoredLayout stored = layout_of(plan);
  const uint64_t chunk_bytes = stored.largest_chunk_bytes, limit = chunks_->limit();
  if (chunk_bytes > limit && !warned_of_a_large_chunk_.exchange(true)) {
    spdlog::warn(
        "[data] a chunk of {} {} is {}, more than data.chunk_cache_size = {}: it is decoded again for every sample; "
        "set data.chunk_cache_size to at least {}, or write the data in smaller chunks",
        in_quotes(name), sdk::shape_text(plan.layout.chunk), size_text(static_cast<int64_t>(chunk_bytes)),
        size_text(static_cast<int64_t>(limit)), size_text(static_cast<int64_t>(4 * chunk_bytes)));
  }
  const MutexLock lock(mutex_);
  for (const OtherFile& other : plan.others) other_files_.insert(other.path);
  // By device and inode, so that a file with several paths counts once.
  if (census_ != nullptr) census_->seen_[{plan.file.device, plan.file.inode, name}] = stored;
}

std::vector<std::string> ArraySession::other_files() const {
  const MutexLock lock(mutex_);
  return {other_files_.begin(), other_files_.end()};
}

StoredLayout layout_of(const ArrayPlan& plan) {
  StoredLayout stored{.datasets = 1, .bytes = product(plan.layout.shape) * plan.layout.element_bytes};
  // Any filter counts, even a checksum: a read then takes the whole chunk.
  if (!plan.layout.filtered || plan.layout.chunk.empty()) return stored;
  stored.compressed_bytes = stored.bytes;
  stored.largest_chunk_bytes = plan.layout.chunk_bytes();
  return stored;
}

LayoutCensus::LayoutCensus(std::shared_ptr<ArraySession> session) : session_(std::move(session)) {
  const MutexLock lock(session_->mutex_);
  session_->census_ = this;
}

LayoutCensus::~LayoutCensus() {
  const MutexLock lock(session_->mutex_);
  session_->census_ = nullptr;
}

StoredLayout LayoutCensus::total() const {
  const MutexLock lock(session_->mutex_);
  StoredLayout total;
  for (const auto& [key, stored] : seen_) {
    total.datasets += stored.datasets;
    total.bytes += stored.bytes;
    total.compressed_bytes += stored.compressed_bytes;
    total.largest_chunk_bytes = std::max(total.largest_chunk_bytes, stored.largest_chunk_bytes);
  }
  return total;
}

}  // namespace headroom
