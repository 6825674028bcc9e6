// Damaged files: single bytes of values, of stored chunks and of what libhdf5 keeps about them are changed. Every read
// gives H5Dread's bytes or an error, and nothing ends this process. HEADROOM_FUZZ_MUTATIONS says how many (300).

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/wait.h>

#include "data/descriptor.hpp"
#include "data/hdf5_array.hpp"
#include "h5_files.hpp"

namespace headroom {
namespace {

constexpr DLDataType i32{kDLInt, 32, 1};
constexpr hsize_t rows = 700, columns = 3;

int mutation_count() {
  const char* told = std::getenv("HEADROOM_FUZZ_MUTATIONS");
  return told != nullptr ? std::atoi(told) : 300;
}

class ArrayFuzz : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    path_ = (folder_ / "a.h5").string();
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    std::vector<int32_t> values(rows * columns);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i * i % 911);
    write_dataset(file.get(), "contiguous", H5T_STD_I32LE, {rows, columns}, values);
    write_dataset(file.get(), "raw", H5T_STD_I32BE, {rows, columns}, values, {100, 2}, 0, H5T_NATIVE_INT32);
    write_dataset(file.get(), "deflated", H5T_STD_I32LE, {rows, columns}, values, {100, 3}, 6);
    add_checked(file.get(), values);
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

  void change(const std::string& sound, std::mt19937& random, size_t begin, size_t end) {
    std::string bytes = sound;
    for (unsigned i = 0; i <= random() % 3; ++i) {
      char& byte = bytes[begin + random() % (end - begin)];
      byte = static_cast<char>(random() % 2 == 0 ? byte ^ (1 << random() % 8) : static_cast<int>(random()));
    }
    write_text(path_, bytes);
  }

  std::string path_;
  int crashes_ = 0;
};

TEST_F(ArrayFuzz, LibrarysBytesOrAnError) {
  const std::string sound = read_text(path_);
  const char* const names[] = {"contiguous", "raw", "deflated", "checked"};
  std::mt19937 random(11);
  int same = 0, refused = 0;
  const int mutations = mutation_count();
  for (int i = 0; i < mutations; ++i) {
    const char* name = names[random() % 4];
    change(sound, random, 0, sound.size());
    const auto ours = by_us(name);
    if (ours.empty()) {
      ++refused;
      continue;
    }
    const auto expected = by_library(path_, name);
    ASSERT_TRUE(ours == expected) << name << ", mutation " << i;
    ++same;
  }
  RecordProperty("same", same);
  RecordProperty("crashes", crashes_);
  std::printf("%d mutations: %d read as libhdf5 reads them, %d refused, of these %d crash libhdf5\n", mutations, same,
              refused, crashes_);
  EXPECT_GT(same, mutations / 4);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace headroom
