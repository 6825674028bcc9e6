#include "arrays/hdf5_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/file.h>
#include <unistd.h>

#include "arrays/chunk_cache.hpp"
#include "arrays/open_files.hpp"
#include "memory/descriptor.hpp"

namespace headroom {

namespace {

constexpr uint64_t mebibyte = 1 << 20;

[[noreturn]] void cannot_read(const std::string& path, int code) {
  throw sdk::Error(HR_IO, in_quotes(path) + " cannot be read: " + std::strerror(code) + "; check the disk");
}

// The signature stands at byte 0, or after a user block of 512, 1024, 2048, ... bytes. Throws ReadFailure.
bool has_signature(int file, off_t size) {
  static constexpr std::array<unsigned char, 8> signature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};
  for (off_t at = 0; at + 8 <= size; at = at == 0 ? 512 : 2 * at) {
    std::array<unsigned char, 8> found{};
    read_exactly(file, static_cast<uint64_t>(at), found.data(), found.size());
    if (found == signature) return true;
  }
  return false;
}

// libhdf5's own environment variable, with the values that switch locks off.
bool locking_switched_off() {
  const char* setting = std::getenv("HDF5_USE_FILE_LOCKING");
  return setting != nullptr && (std::strcmp(setting, "FALSE") == 0 || std::strcmp(setting, "0") == 0);
}

// Whether libhdf5 should lock the file: false where locks are switched off or the file system has none. Throws where a
// writer holds it; libhdf5's own message would not say so.
bool lockable(int file, const std::string& path) {
  if (locking_switched_off()) return false;
  // Only a trial: libhdf5 takes its own lock when it opens the file.
  if (flock(file, LOCK_SH | LOCK_NB) == 0) return flock(file, LOCK_UN) == 0;
  if (errno != EWOULDBLOCK) return false;
  throw sdk::Error(HR_IO,
                   in_quotes(path) +
                       " is locked: another program has it open for writing; wait until it closes the file, or set "
                       "HDF5_USE_FILE_LOCKING=FALSE to read it nevertheless");
}

// The number behind `label` in a message of libhdf5; 0 where there is none.
uint64_t number_after(const std::string& text, std::string_view label) {
  uint64_t number = 0;
  const size_t at = text.find(label);
  if (at != std::string::npos) std::from_chars(text.data() + at + label.size(), text.data() + text.size(), number);
  return number;
}

[[noreturn]] void cannot_parse(const std::string& path, off_t size) {
  const std::string reason = hdf5_reason();
  if (reason.find("truncated file") != std::string::npos) {
    throw sdk::Error(HR_DATA_CORRUPT, in_quotes(path) + " is truncated: its header promises " +
                                          std::to_string(number_after(reason, "stored_eof = ")) + " bytes and " +
                                          std::to_string(size) + " are there; copy it again");
  }
  if (reason.find("already open for write") != std::string::npos) {
    throw sdk::Error(HR_IO,
                     in_quotes(path) +
                         " is marked as open for writing: a program writes it, or died writing it; in the second case "
                         "run h5clear -s on it");
  }
  if (const int code = errno_of(reason); code != 0) cannot_read(path, code);
  throw sdk::Error(HR_DATA_CORRUPT, in_quotes(path) + " is damaged: " + reason + "; copy it again or leave it out");
}

struct Opened {
  Handle id;
  FileIdentity identity;
};

// Finds out what is wrong with a file before libhdf5 opens it, because its messages would not tell. O_NONBLOCK: opening
// a FIFO would wait for its writer.
Opened open_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) throw_cannot_open(path, errno);
  struct stat found {};
  if (fstat(file.get(), &found) != 0) throw_cannot_open(path, errno);
  if (S_ISDIR(found.st_mode)) throw sdk::Error(HR_IO, in_quotes(path) + " is a folder; an HDF5 file is needed");
  if (!S_ISREG(found.st_mode))
    throw sdk::Error(HR_IO, in_quotes(path) + " is not a regular file; an HDF5 file is needed");
  const off_t size = found.st_size;
  if (size == 0) throw sdk::Error(HR_DATA_CORRUPT, in_quotes(path) + " is empty (0 bytes); write or copy it again");
  const bool locks = lockable(file.get(), path);
  try {
    if (!has_signature(file.get(), size)) {
      throw sdk::Error(HR_DATA_CORRUPT,
                       in_quotes(path) + " is not an HDF5 file: it has no HDF5 signature; convert it or leave it out");
    }
  } catch (const ReadFailure& failure) {
    if (failure.code == 0) throw_changed(path);  // it was longer a moment ago
    cannot_read(path, failure.code);
  }
  const Handle access(H5Pcreate(H5P_FILE_ACCESS));
  // The last argument: a file system whose locks are disabled is no error.
  H5Pset_file_locking(access.get(), locks, true);
  Opened opened{Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get())), FileIdentity::of(found)};
  if (!opened.id) cannot_parse(path, size);
  return opened;
}

}  // namespace

struct Hdf5File::Pool {
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<Hdf5File>> files;  // by device and inode
  std::list<Hdf5File*> open;                                               // used last: first

  void close_least_used(size_t files_kept) {
    while (open.size() > 1 && open.size() > files_kept) open.back()->close();
  }
};

Hdf5File::Pool& Hdf5File::pool() {
  static auto* pool = new Pool;  // never destroyed: libhdf5 ends at exit, before or after it
  return *pool;
}

std::shared_ptr<Hdf5File> Hdf5File::share(const std::string& path) {
  const FileIdentity found = identify(path);
  auto& known = pool().files[{found.device, found.inode}];
  if (auto file = known.lock()) {
    if (file->identity_ != found) throw_changed(path);
    file->id();
    return file;
  }
  std::shared_ptr<Hdf5File> file(new Hdf5File(path, found));
  // Opened before it is known. Where that throws, the destructor takes the empty entry out again.
  file->id();
  known = file;
  return file;
}

Hdf5File::~Hdf5File() {
  const Hdf5Lock lock;
  close();
  // Another thread may have shared the file anew while this one waited for the lock: that entry stays.
  const auto known = pool().files.find({identity_.device, identity_.inode});
  if (known != pool().files.end() && known->second.expired()) pool().files.erase(known);
}

void Hdf5File::close() {
  // Datasets first: an open one would keep the file open.
  while (!datasets_.empty()) {
    const Dataset closed = std::move(datasets_.back());
    datasets_.pop_back();
    if (closed.cache_bytes > 0) closed.chunks->set_aside(-static_cast<int64_t>(closed.cache_bytes));
  }
  id_ = Handle();
  std::erase(pool().open, this);
}

hid_t Hdf5File::id() {
  auto& open = pool().open;
  if (id_) {
    if (open.front() != this) open.splice(open.begin(), open, std::find(open.begin(), open.end(), this));
    return id_.get();
  }
  pool().close_least_used(most_open_files() - 1);
  Opened opened = open_file(path_);
  if (opened.identity != identity_) throw_changed(path_);
  id_ = std::move(opened.id);
  open.push_front(this);
  return id_.get();
}

Hdf5File::Dataset& Hdf5File::dataset(const std::string& name, uint64_t cache_bytes,
                                     const std::shared_ptr<ChunkCache>& chunks) {
  const hid_t file = id();
  cache_bytes = std::min(cache_bytes, chunks->limit());
  for (Dataset& dataset : datasets_) {
    if (dataset.name == name) return dataset;
  }
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS));
  H5Pset_chunk_cache(access.get(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, cache_bytes,
                     0.0);  // overlapping windows read a chunk many times
  Dataset dataset{name, Handle(H5Dopen2(file, name.c_str(), access.get())), {}, cache_bytes, chunks};
  if (dataset.id) dataset.space = Handle(H5Dget_space(dataset.id.get()));
  if (!dataset.space) {
    throw_hdf5(in_quotes(name) + " of " + in_quotes(path_) + " cannot be opened", hdf5_reason());
  }
  if (cache_bytes > 0) chunks->set_aside(static_cast<int64_t>(cache_bytes));
  // This file was used last, so it stays open whatever is closed here.
  close_overdrawn(*chunks);
  return datasets_.emplace_back(std::move(dataset));
}

bool Hdf5File::uses(const ChunkCache& chunks) const {
  return std::ranges::any_of(datasets_, [&](const Dataset& each) { return each.chunks.get() == &chunks; });
}

// Those used least go first; the one used last stays, it may be read just now.
void Hdf5File::close_overdrawn(const ChunkCache& chunks) {
  auto& open = pool().open;
  for (auto at = open.end(); chunks.is_overdrawn() && open.size() > 1 && at != std::next(open.begin());) {
    Hdf5File& file = **--at;
    if (!file.uses(chunks)) continue;
    ++at;
    file.close();
  }
}

uint64_t chunk_cache_bytes(uint64_t chunk_bytes) {
  if (chunk_bytes == 0) return 0;
  return std::max(std::clamp<uint64_t>(8 * chunk_bytes, mebibyte / 4, mebibyte), 2 * chunk_bytes);
}

}  // namespace headroom
