#include "memory/black_box.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.hpp"
#include "memory/crash_site.hpp"

namespace headroom {

namespace {

// The file is a Header and `capacity` Slots, in the byte order of the machine; all we run on are little endian. A
// slot's sequence is 2i + 1 while record i is written into it and 2i + 2 once it is whole: a reader that finds anything
// else, before or after it copied the record, has a torn one.
constexpr auto magic = std::bit_cast<uint64_t>(std::array{'H', 'R', 'B', 'L', 'K', 'B', 'O', 'X'});
constexpr uint32_t format = 1;
constexpr uint32_t capacity = 1024;

struct Header {
  uint64_t magic;
  uint32_t format, record_bytes, capacity, owners;
  int64_t pid, started_ms;
  uint64_t pushed;  // records begun so far
  uint64_t phase;
  int64_t step, epoch, micro_batch;
  std::array<char, 352> crash_site;
  std::array<char, 72> plugin_call;
  uint64_t call_changes;
};
static_assert(sizeof(Header) == 512);

// A record is copied in atomic words, because a reader may copy it while it is written.
using Words = std::array<uint64_t, sizeof(BlackBoxRecord) / 8>;

struct Slot {
  uint64_t sequence;
  Words words;
};
static_assert(sizeof(Slot) == 8 + sizeof(BlackBoxRecord));

struct Box {
  Header header;
  std::array<Slot, capacity> slots;
};

// Also where the mapping is read-only: a load of eight bytes is one instruction.
template <typename Number>
Number load(const Number& number, std::memory_order order = std::memory_order_relaxed) {
  return std::atomic_ref<Number>(const_cast<Number&>(number)).load(order);
}
template <typename Number>
void store(Number& number, Number value, std::memory_order order = std::memory_order_relaxed) {
  std::atomic_ref<Number>(number).store(value, order);
}

int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

Error cannot_make(const std::filesystem::path& file, int error) {
  return {Exit::cannot_write, "black box", file.string() + " cannot be made: " + std::strerror(error)};
}

}  // namespace

struct BlackBox::Mapping : Box {};

BlackBox::BlackBox(const std::filesystem::path& file) {
  unlink(file.c_str());  // somebody may still map an older one: it is replaced, not cut short under them
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) throw cannot_make(file, errno);
  // Writing to a hole of a mapped file on a full disk would be a SIGBUS.
  int failed = posix_fallocate(descriptor, 0, off_t{sizeof(Box)});
  void* address = MAP_FAILED;
  if (failed == 0) {
    address = mmap(nullptr, sizeof(Box), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (address == MAP_FAILED) failed = errno;
  }
  close(descriptor);
  if (failed != 0) {
    unlink(file.c_str());
    throw cannot_make(file, failed);
  }
  mapping_ = static_cast<Mapping*>(address);
  Header& header = mapping_->header;
  header.format = format;
  header.record_bytes = sizeof(BlackBoxRecord);
  header.capacity = capacity;
  header.owners = owner_count;
  header.pid = getpid();
  header.started_ms = now_ms();
  store(header.magic, magic, std::memory_order_release);  // last: from here on it is a black box
}

BlackBox::~BlackBox() { munmap(mapping_, sizeof(Box)); }

void BlackBox::set_phase(Phase phase) { store(mapping_->header.phase, static_cast<uint64_t>(phase)); }

void BlackBox::set_position(int64_t step, int64_t epoch) {
  store(mapping_->header.step, step);
  store(mapping_->header.epoch, epoch);
}

void BlackBox::set_micro_batch(int64_t samples) { store(mapping_->header.micro_batch, samples); }

std::span<char> BlackBox::crash_site() { return mapping_->header.crash_site; }
std::span<char> BlackBox::plugin_call() { return mapping_->header.plugin_call; }

void BlackBox::push(BlackBoxRecord record) {
  Header& header = mapping_->header;
  record.time_ms = now_ms();
  record.phase = static_cast<Phase>(load(header.phase));
  if (record.phase == Phase::finished) return;  // it is being taken down: what it held is told already
  record.step = load(header.step);
  record.epoch = load(header.epoch);
  record.micro_batch = load(header.micro_batch);
  store(header.call_changes, PluginCall::changes());
  const auto words = std::bit_cast<Words>(record);
  // Several threads may push: each gets a number, and with it a slot, of its own.
  const uint64_t number = std::atomic_ref(header.pushed).fetch_add(1);
  Slot& slot = mapping_->slots[number % capacity];
  store(slot.sequence, 2 * number + 1);
  // Every word is released: who sees one of them sees the odd sequence, or a later one.
  for (size_t i = 0; i < words.size(); ++i) store(slot.words[i], words[i], std::memory_order_release);
  store(slot.sequence, 2 * number + 2, std::memory_order_release);
}

namespace {

// nullptr: there is no such file, or it is of another size.
const Box* map_box(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat info {};
  void* address = MAP_FAILED;
  // Reading a mapping beyond the end of its file would be a SIGBUS.
  if (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == off_t{sizeof(Box)})
    address = mmap(nullptr, sizeof(Box), PROT_READ, MAP_SHARED, descriptor, 0);
  close(descriptor);
  return address != MAP_FAILED ? static_cast<const Box*>(address) : nullptr;
}

// A damaged file may lack the final zero.
template <size_t size>
std::string text_of(const std::array<char, size>& note) {
  return {note.data(), strnlen(note.data(), size)};
}

// A number that is no phase, from a damaged file, becomes the last one: phase_name() indexes with it.
Phase phase_of(uint64_t number) {
  return static_cast<Phase>(std::min<uint64_t>(number, static_cast<uint64_t>(Phase::finished)));
}

std::optional<BlackBoxRecord> whole_record(const Slot& slot, uint64_t number) {
  const uint64_t whole = 2 * number + 2;
  if (load(slot.sequence, std::memory_order_acquire) != whole) return std::nullopt;
  Words words;
  // Every load acquires, so that the second look at the sequence stays behind all of them.
  for (size_t i = 0; i < words.size(); ++i) words[i] = load(slot.words[i], std::memory_order_acquire);
  if (load(slot.sequence) != whole) return std::nullopt;
  auto record = std::bit_cast<BlackBoxRecord>(words);
  record.phase = phase_of(static_cast<uint64_t>(record.phase));
  return record;
}

}  // namespace

std::optional<BlackBoxView> BlackBoxView::open(const std::filesystem::path& file) {
  const Box* box = map_box(file);
  if (box == nullptr) return std::nullopt;
  BlackBoxView view(box);
  const Header& header = box->header;
  // The magic number was stored last: who sees it sees the rest of the header.
  if (load(header.magic, std::memory_order_acquire) != magic || header.format != format ||
      header.record_bytes != sizeof(BlackBoxRecord) || header.capacity != capacity || header.owners != owner_count) {
    return std::nullopt;
  }
  return view;
}

BlackBoxView::~BlackBoxView() {
  if (box_ != nullptr) munmap(const_cast<void*>(box_), sizeof(Box));
}

BlackBoxReading BlackBoxView::head() const {
  const Header& header = static_cast<const Box*>(box_)->header;
  return {.pid = header.pid,
          .started_ms = header.started_ms,
          .phase = phase_of(load(header.phase)),
          .step = load(header.step),
          .epoch = load(header.epoch),
          .micro_batch = load(header.micro_batch),
          .crash_site = text_of(header.crash_site),
          .plugin_call = text_of(header.plugin_call),
          .call_changes = load(header.call_changes)};
}

BlackBoxReading BlackBoxView::whole() const {
  const Box& box = *static_cast<const Box*>(box_);
  BlackBoxReading reading = head();
  const uint64_t end = load(box.header.pushed, std::memory_order_acquire);
  // Older ones have been overwritten.
  for (uint64_t number = end - std::min<uint64_t>(end, capacity); number != end; ++number) {
    if (auto record = whole_record(box.slots[number % capacity], number)) reading.records.push_back(*record);
  }
  return reading;
}

std::optional<BlackBoxReading> read_black_box(const std::filesystem::path& file) {
  const auto view = BlackBoxView::open(file);
  if (!view) return std::nullopt;
  return view->whole();
}

std::string_view phase_name(Phase phase) {
  constexpr std::array<std::string_view, 10> names = {"starting",  "probing",    "loading",   "forward",    "backward",
                                                      "optimizer", "evaluating", "epoch end", "checkpoint", "finished"};
  return names[static_cast<size_t>(phase_of(static_cast<uint64_t>(phase)))];
}

}  // namespace headroom
