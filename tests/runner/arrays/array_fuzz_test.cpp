// Damaged files: bytes of values, of stored chunks, of their filter masks and of what libhdf5 keeps about them are
// changed. Every read gives H5Dread's bytes or an error, and nothing ends this process. HEADROOM_FUZZ_MUTATIONS says
// how many of each kind (100).

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/wait.h>

#include "arrays/filters.hpp"
#include "arrays/hdf5_array.hpp"
#include "arrays/open_files.hpp"
#include "h5_files.hpp"
#include "memory/descriptor.hpp"

namespace headroom {
namespace {

constexpr DLDataType i32{kDLInt, 32, 1};
constexpr hsize_t rows = 700, columns = 3;

int mutation_count() {
  const char* told = std::getenv("HEADROOM_FUZZ_MUTATIONS");
  return told != nullptr ? std::atoi(told) : 100;
}

class ArrayFuzz : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    path_ = (folder_ / "a.h5").string();
    write_sound();
    sound_ = read_text(path_);
    find_places(sound_);
  }

  void write_sound() const {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    std::vector<int32_t> values(rows * columns);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i * i % 911);
    write_dataset(file.get(), "contiguous", H5T_STD_I32LE, {rows, columns}, values);
    write_dataset(file.get(), "raw", H5T_STD_I32BE, {rows, columns}, values, {100, 2}, 0, H5T_NATIVE_INT32);
    write_dataset(file.get(), "deflated", H5T_STD_I32LE, {rows, columns}, values, {100, 3}, 6);
    add_checked(file.get(), values);
    add_lzf(file.get(), values);
  }

  // libhdf5 makes no dataset with a filter that only decodes, as ours does: one that claims to encode.
  static void register_lzf() {
    const auto undo = [](unsigned, size_t, const unsigned* client, size_t bytes, size_t* room, void** data) -> size_t {
      void* chunk = H5allocate_memory(client[2], false);
      try {
        inflate_lzf({static_cast<const std::byte*>(*data), bytes}, {static_cast<std::byte*>(chunk), client[2]});
      } catch (const DamagedChunk&) {
        H5free_memory(chunk);
        return 0;
      }
      H5free_memory(*data);
      *data = chunk;
      return *room = client[2];
    };
    const H5Z_class2_t lzf{H5Z_CLASS_T_VERS, lzf_filter_id, 1, 1, "lzf", nullptr, nullptr, undo};
    ASSERT_GE(H5Zregister(&lzf), 0);
  }

  // LZF behind a shuffle that its chunks left out; all bytes are copied as they are.
  static void add_lzf(hid_t file, const std::vector<int32_t>& values) {
    constexpr unsigned chunk_bytes = 100 * columns * sizeof(int32_t);
    const hsize_t shape[] = {rows, columns}, chunk[] = {100, columns};
    const unsigned client[] = {4, 261, chunk_bytes};
    register_lzf();
    const Handle space(H5Screate_simple(2, shape, nullptr)), storage(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(storage.get(), 2, chunk);
    H5Pset_shuffle(storage.get());
    H5Pset_filter(storage.get(), lzf_filter_id, H5Z_FLAG_OPTIONAL, 3, client);
    const Handle dataset(H5Dcreate2(file, "lzf", H5T_STD_I32LE, space.get(), H5P_DEFAULT, storage.get(), H5P_DEFAULT));
    ASSERT_TRUE(dataset);
    for (hsize_t row = 0; row < rows; row += 100) {
      const hsize_t origin[] = {row, 0};
      const auto* raw = reinterpret_cast<const char*>(values.data() + row * columns);
      std::string stored;
      for (size_t at = 0; at < chunk_bytes; at += 24) stored += char(23) + std::string(raw + at, 24);
      const uint32_t not_shuffled = 1;
      ASSERT_GE(H5Dwrite_chunk(dataset.get(), H5P_DEFAULT, not_shuffled, origin, stored.size(), stored.data()), 0);
    }
  }

  static void add_checked(hid_t file, const std::vector<int32_t>& values) {
    const hsize_t shape[] = {rows, columns}, chunk[] = {90, 3};
    const Handle space(H5Screate_simple(2, shape, nullptr)), storage(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(storage.get(), 2, chunk);
    H5Pset_shuffle(storage.get());
    H5Pset_deflate(storage.get(), 6);
    H5Pset_fletcher32(storage.get());
    const Handle dataset(
        H5Dcreate2(file, "checked", H5T_STD_I32LE, space.get(), H5P_DEFAULT, storage.get(), H5P_DEFAULT));
    ASSERT_GE(H5Dwrite(dataset.get(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  }

  // H5Dread of everything, in a process of its own; empty where it fails or crashes.
  static std::vector<int32_t> by_library(const std::string& path, const char* name) {
    int ends[2];
    if (pipe(ends) != 0) return {};
    const pid_t child = fork();
    if (child == 0) {
      std::vector<int32_t> values(rows * columns);
      H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
      const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
      const hid_t dataset = file >= 0 ? H5Dopen2(file, name, H5P_DEFAULT) : -1;
      const hid_t space = dataset >= 0 ? H5Dget_space(dataset) : -1;
      const hsize_t count[] = {rows, columns}, start[] = {0, 0};
      const hid_t memory = H5Screate_simple(2, count, nullptr);
      if (space < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr) < 0 ||
          H5Dread(dataset, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, values.data()) < 0)
        _exit(1);
      const size_t bytes = values.size() * sizeof(int32_t);
      _exit(write(ends[1], values.data(), bytes) == static_cast<ssize_t>(bytes) ? 0 : 1);
    }
    close(ends[1]);
    std::vector<int32_t> values(rows * columns);
    size_t got = 0;
    auto* to = reinterpret_cast<char*>(values.data());
    for (ssize_t part; (part = read(ends[0], to + got, values.size() * 4 - got)) > 0;) got += static_cast<size_t>(part);
    close(ends[0]);
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0 || got != values.size() * 4) values.clear();
    return values;
  }

  // What the arrays service gives; empty after an error, whose sentence must name the file.
  std::vector<int32_t> by_us(const char* name) {
    std::vector<int32_t> values(rows * columns, -1);
    OpenArray array(path_, name);
    hr_status status = array.status();
    const uint64_t start[] = {0, 0}, count[] = {rows, columns};
    hr_array_info info{};
    if (status == HR_OK) status = arrays_service().info(array.get(), &info, nullptr);
    if (status == HR_OK && info.ndim != 2) return {};
    const hr_array_target target{HR_WHOLE, i32, values.data(), 0};
    hr_error error{};
    std::string said = array.message();
    if (status == HR_OK) {
      status = arrays_service().read_box(array.get(), start, count, &target, 1, &error);
      said = error.message;
    }
    if (status == HR_OK) return values;
    EXPECT_NE(said.find(path_), std::string::npos) << said;
    crashes_ += said.find("makes libhdf5 crash") != std::string::npos ? 1 : 0;
    return {};
  }

  // Bytes that a mutation may change, and the dataset that they are of (NULL: any).
  struct Place {
    size_t begin, end;
    const char* name = nullptr;
  };

  // Where the sound file keeps the bytes of chunks and values, and the filter masks in its chunk index.
  void find_places(const std::string& sound) {
    for (const char* name : names) {
      OpenArray array(path_, name);
      const ArrayPlan& plan = reinterpret_cast<const Hdf5Array*>(array.get())->plan();
      if (plan.lane == Lane::contiguous) values_.push_back({plan.offset, plan.offset + rows * columns * 4, name});
      for (const StoredChunk& chunk : plan.chunks) {
        payloads_.push_back({chunk.offset, chunk.offset + chunk.bytes, name});
        // A key of the index: the stored bytes, the mask, the origin (two axes and the byte), before the address.
        const uint64_t address = chunk.offset;
        const std::string pointer(reinterpret_cast<const char*>(&address), sizeof address);
        for (size_t at = sound.find(pointer); at != sound.npos; at = sound.find(pointer, at + 1)) {
          if (at >= 32 && std::memcmp(&sound[at - 32], &chunk.bytes, 4) == 0)
            masks_.push_back({at - 28, at - 24, name});
        }
      }
    }
    size_t at = 0;
    std::vector<Place> taken = payloads_;
    taken.insert(taken.end(), values_.begin(), values_.end());
    std::sort(taken.begin(), taken.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
    for (const Place& place : taken) {
      if (place.begin > at) metadata_.push_back({at, place.begin});
      at = std::max(at, place.end);
    }
    if (at < sound.size()) metadata_.push_back({at, sound.size()});
  }

  // Up to three bytes of the place change, or single bits of them.
  void change(const Place& place, std::mt19937& random) const {
    std::string bytes = sound_;
    for (unsigned i = 0; i <= random() % 3; ++i) {
      char& byte = bytes[place.begin + random() % (place.end - place.begin)];
      byte = static_cast<char>(random() % 2 == 0 ? byte ^ (1 << random() % 8) : static_cast<int>(random()));
    }
    write_text(path_, bytes);
  }

  // Mutations of `places`, read through both.
  void compare(const char* kind, const std::vector<Place>& places, unsigned seed) {
    ASSERT_FALSE(places.empty()) << kind;
    std::mt19937 random(seed);
    int same = 0, refused = 0;
    crashes_ = 0;
    const int mutations = mutation_count();
    for (int i = 0; i < mutations; ++i) {
      const Place& place = places[random() % places.size()];
      const char* name = place.name != nullptr ? place.name : names[random() % std::size(names)];
      change(place, random);
      const auto ours = by_us(name);
      if (ours.empty()) {
        ++refused;
        continue;
      }
      const auto expected = by_library(path_, name);
      ASSERT_TRUE(ours == expected) << name << ", mutation " << i << " of " << kind;
      ++same;
    }
    std::printf("%d mutations of %s: %d read as libhdf5 reads them, %d refused, of these %d crash libhdf5\n", mutations,
                kind, same, refused, crashes_);
  }

  static constexpr const char* names[] = {"contiguous", "raw", "deflated", "checked", "lzf"};
  std::vector<Place> values_, payloads_, masks_, metadata_;
  std::string sound_;
  std::string path_;
  int crashes_ = 0;
};

TEST_F(ArrayFuzz, Anywhere) { compare("any byte", {{0, sound_.size()}}, 11); }
TEST_F(ArrayFuzz, Values) { compare("contiguous values", values_, 12); }
TEST_F(ArrayFuzz, ChunkPayloads) { compare("chunk payloads", payloads_, 13); }
TEST_F(ArrayFuzz, FilterMasks) { compare("filter masks", masks_, 14); }
TEST_F(ArrayFuzz, Metadata) { compare("metadata", metadata_, 15); }

}  // namespace
}  // namespace headroom
