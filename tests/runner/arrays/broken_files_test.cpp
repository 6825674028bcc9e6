// Files that cannot be read: each is one exact sentence, and none ends the process.

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "h5_files.hpp"

namespace headroom {
namespace {

constexpr DLDataType f32{kDLFloat, 32, 1};

class BrokenFile : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    path_ = (folder_ / "a.hdf5").string();
  }

  // A sound file to be broken: /emg2pose/timeseries of `rows` float32, and a string dataset.
  void write_sound(hsize_t rows = 1000, std::vector<hsize_t> chunk = {}, int deflate = 0) {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    std::vector<float> values(rows);
    for (size_t i = 0; i < rows; ++i) values[i] = static_cast<float>(i * i % 1009);
    write_dataset(file.get(), "/emg2pose/timeseries", H5T_IEEE_F32LE, {rows}, values, chunk, deflate);
    const Handle text(H5Tcopy(H5T_C_S1));
    H5Tset_size(text.get(), 4);
    write_dataset(file.get(), "/emg2pose/label", text.get(), {1}, std::vector<char>{'l', 'e', 'f', 't'});
  }

  // "CODE: sentence" of the first thing that fails on the way to reading `dataset`, with the path as FILE.
  std::string failure(const std::string& dataset = "/emg2pose/timeseries", std::vector<uint64_t> count = {10}) {
    OpenArray array(path_, dataset);
    hr_status status = array.status();
    std::vector<float> values(1000);
    if (status == HR_OK)
      status = array.read(std::vector<uint64_t>(count.size(), 0), count, {{HR_WHOLE, f32, values.data(), 0}});
    return named(status) + ": " + without_path(array.message());
  }

  static std::string named(hr_status status) {
    switch (status) {
      case HR_OK:
        return "OK";
      case HR_INVALID_ARGUMENT:
        return "INVALID_ARGUMENT";
      case HR_UNSUPPORTED:
        return "UNSUPPORTED";
      case HR_IO:
        return "IO";
      case HR_NOT_FOUND:
        return "NOT_FOUND";
      case HR_DATA_CORRUPT:
        return "DATA_CORRUPT";
      default:
        return std::to_string(status);
    }
  }
  std::string without_path(std::string text) const {
    for (size_t at; (at = text.find(path_)) != std::string::npos;) text.replace(at, path_.size(), "FILE");
    return text;
  }
  std::string path_;
};

TEST_F(BrokenFile, Missing) { EXPECT_EQ(failure(), "NOT_FOUND: 'FILE' does not exist; check the path"); }

TEST_F(BrokenFile, Folder) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(failure(), "IO: 'FILE' is a folder; an HDF5 file is needed");
}

TEST_F(BrokenFile, Pipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(failure(), "IO: 'FILE' is not a regular file; an HDF5 file is needed");
}

TEST_F(BrokenFile, Empty) {
  write_text(path_, "");
  EXPECT_EQ(failure(), "DATA_CORRUPT: 'FILE' is empty (0 bytes); write or copy it again");
}

TEST_F(BrokenFile, NotHdf5) {
  write_text(path_, "time,emg\n0.0,1.0\n");
  EXPECT_EQ(failure(),
            "DATA_CORRUPT: 'FILE' is not an HDF5 file: it has no HDF5 signature; convert it or leave it out");
}

TEST_F(BrokenFile, Truncated) {
  write_sound();
  const auto size = std::filesystem::file_size(path_);
  std::filesystem::resize_file(path_, 2000);
  EXPECT_EQ(failure(), "DATA_CORRUPT: 'FILE' is truncated: its header promises " + std::to_string(size) +
                           " bytes and 2000 are there; copy it again");
}

TEST_F(BrokenFile, TruncatedInItsHeader) {
  write_sound();
  std::filesystem::resize_file(path_, 40);
  EXPECT_EQ(failure().substr(0, 30), "DATA_CORRUPT: 'FILE' is damage");
}

TEST_F(BrokenFile, TruncatedAnywhere) {
  for (const int deflate : {0, 6}) {
    write_sound(300, deflate > 0 ? std::vector<hsize_t>{64} : std::vector<hsize_t>{}, deflate);
    for (auto size = std::filesystem::file_size(path_) - 1; size > 8; size -= std::min<uintmax_t>(size, 41)) {
      std::filesystem::resize_file(path_, size);
      EXPECT_EQ(failure("/emg2pose/timeseries", {300}).substr(0, 13), "DATA_CORRUPT:") << size;
    }
  }
}

TEST_F(BrokenFile, PromisesMoreValuesThanItHolds) {
  write_sound(1000);
  std::string bytes = read_text(path_);
  const std::string rows("\xE8\x03\0\0\0\0\0\0", 8);  // the dataspace: current and largest extent
  const size_t at = bytes.find(rows + rows);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 2] = bytes[at + 10] = 1;  // 1000 + 65536 rows
  write_text(path_, bytes);
  EXPECT_EQ(failure(),
            "DATA_CORRUPT: '/emg2pose/timeseries' of 'FILE' stores 4000 bytes, fewer than its shape needs; copy the "
            "file again or leave it out");
}

// Root reads everything; the test gives that right up in a child.
TEST_F(BrokenFile, Unreadable) {
  write_sound();
  std::filesystem::permissions(folder_, std::filesystem::perms::others_exec, std::filesystem::perm_options::add);
  std::filesystem::permissions(path_, std::filesystem::perms::none);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (geteuid() == 0 && seteuid(65534) != 0) _exit(77);
    const std::string said = failure();
    const ssize_t written = write(ends[1], said.data(), said.size());
    _exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string said(1000, '\0');
  said.resize(static_cast<size_t>(std::max<ssize_t>(0, read(ends[0], said.data(), said.size()))));
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "root cannot become another user here";
  EXPECT_EQ(said, "IO: cannot open 'FILE': Permission denied; make it readable for this user");
}

// Another process writes: libhdf5's writers hold an exclusive flock.
TEST_F(BrokenFile, LockedByAWriter) {
  write_sound();
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  char byte = 0;
  if (child == 0) {
    close(done[1]);
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const bool told = write(ready[1], file >= 0 ? "y" : "n", 1) == 1;
    const bool ended = read(done[0], &byte, 1) == 0;
    _exit(told && ended ? 0 : 1);
  }
  close(done[0]);
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  const std::string said = failure();
  close(done[1]);
  int status = -1;
  waitpid(child, &status, 0);
  close(ready[0]), close(ready[1]);
  EXPECT_EQ(said,
            "IO: 'FILE' is locked: another program has it open for writing; wait until it closes the file, or set "
            "HDF5_USE_FILE_LOCKING=FALSE to read it nevertheless");
}

// While a program writes and lets others read (SWMR), what stands where is not settled.
TEST_F(BrokenFile, WrittenWhileOthersMayRead) {
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  char byte = 0;
  if (child == 0) {
    close(done[1]);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    const bool told = write(ready[1], H5Fstart_swmr_write(file) >= 0 ? "y" : "n", 1) == 1;
    const bool ended = read(done[0], &byte, 1) == 0;
    H5Fclose(file);
    _exit(told && ended ? 0 : 1);
  }
  close(done[0]);
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  const std::string said = failure();
  close(done[1]);
  waitpid(child, nullptr, 0);
  close(ready[0]), close(ready[1]);
  EXPECT_EQ(said,
            "IO: 'FILE' is marked as open for writing: a program writes it, or died writing it; in the second case run "
            "h5clear -s on it");
  EXPECT_EQ(failure().substr(0, 9), "NOT_FOUND") << "closed, it is a file as any other";
}

TEST_F(BrokenFile, LeftOpenByAWriterThatDied) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(failure(),
            "IO: 'FILE' is marked as open for writing: a program writes it, or died writing it; in the second case run "
            "h5clear -s on it");
}

TEST_F(BrokenFile, MissingDataset) {
  write_sound();
  EXPECT_EQ(
      failure("/emg2pose/time_series"),
      "NOT_FOUND: 'FILE' has no '/emg2pose/time_series'; group '/emg2pose' holds datasets 'label' and 'timeseries'");
  EXPECT_EQ(failure("/emg2qwerty/timeseries"),
            "NOT_FOUND: 'FILE' has no '/emg2qwerty/timeseries'; group '/' holds group 'emg2pose'");
  EXPECT_EQ(failure("/emg2pose/timeseries/emg"),
            "NOT_FOUND: 'FILE' has no '/emg2pose/timeseries/emg': '/emg2pose/timeseries' is not a group");
}

TEST_F(BrokenFile, MissingDatasetAmongMany) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    for (int i = 0; i < 12; ++i)
      write_dataset(file.get(), "d" + std::to_string(10 + i), H5T_STD_I8LE, {1}, std::vector<int8_t>{1});
  }
  EXPECT_EQ(failure("x"),
            "NOT_FOUND: 'FILE' has no '/x'; group '/' holds datasets 'd10', 'd11', 'd12', 'd13', 'd14', 'd15', 'd16', "
            "'d17' and 4 more");
}

TEST_F(BrokenFile, EmptyGroup) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
  }
  EXPECT_EQ(failure("x"), "NOT_FOUND: 'FILE' has no '/x'; group '/' holds nothing");
}

TEST_F(BrokenFile, GroupForDataset) {
  write_sound();
  EXPECT_EQ(
      failure("emg2pose"),
      "INVALID_ARGUMENT: '/emg2pose' of 'FILE' is a group, not a dataset; it holds datasets 'label' and 'timeseries'");
}

TEST_F(BrokenFile, DatasetForGroup) {
  write_sound();
  hr_error error{};
  const auto visit = [](void*, const char*, int32_t) { return 0; };
  EXPECT_EQ(arrays_service().list(nullptr, path_.c_str(), "/emg2pose/timeseries", visit, nullptr, &error),
            HR_INVALID_ARGUMENT);
  EXPECT_EQ(without_path(error.message), "'/emg2pose/timeseries' of 'FILE' is a dataset, not a group");
}

TEST_F(BrokenFile, WrongType) {
  write_sound();
  EXPECT_EQ(failure("/emg2pose/label", {1}),
            "INVALID_ARGUMENT: '/emg2pose/label' of 'FILE' is of type string; integers, floats and bool of 1 to 8 "
            "bytes can be read");
}

TEST_F(BrokenFile, CompoundForPlainAndTooFewMembers) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    const Handle type(H5Tcreate(H5T_COMPOUND, 8));
    H5Tinsert(type.get(), "time", 0, H5T_IEEE_F64LE);
    write_dataset(file.get(), "t", type.get(), {20}, std::vector<double>(20));
  }
  EXPECT_EQ(failure("t"),
            "INVALID_ARGUMENT: '/t' of 'FILE' is a compound of 1 members; each is read by its own number");
  OpenArray array(path_, "t");
  float out[1];
  EXPECT_EQ(array.read({0}, {1}, {{1, f32, out, 0}}), HR_INVALID_ARGUMENT);
  EXPECT_EQ(without_path(array.message()), "'/t' of 'FILE' has 1 members; there is no member number 1");
  hr_array_member member{};
  EXPECT_EQ(arrays_service().member(array.get(), 1, &member, nullptr), HR_INVALID_ARGUMENT);
}

TEST_F(BrokenFile, ShorterThanWasAskedFor) {
  write_sound(5);
  EXPECT_EQ(failure(),
            "INVALID_ARGUMENT: '/emg2pose/timeseries' of 'FILE' has shape [5]; [10] from [0] reaches beyond it");
}

TEST_F(BrokenFile, BoxesThatWrapAround) {
  write_sound(5);
  OpenArray array(path_, "/emg2pose/timeseries");
  float out[1];
  for (const uint64_t start : {uint64_t{6}, UINT64_MAX, UINT64_MAX - 3}) {
    EXPECT_EQ(array.read({start}, {UINT64_MAX - start + 2}, {{HR_WHOLE, f32, out, 0}}), HR_INVALID_ARGUMENT) << start;
  }
}

TEST_F(BrokenFile, FilterThatIsNotThere) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    const hsize_t rows = 20;
    const Handle space(H5Screate_simple(1, &rows, nullptr)), storage(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(storage.get(), 1, &rows);
    const H5Z_class2_t zstd{H5Z_CLASS_T_VERS,
                            32015,
                            1,
                            1,
                            "zstd",
                            nullptr,
                            nullptr,
                            [](unsigned, size_t, const unsigned*, size_t bytes, size_t*, void**) { return bytes; }};
    H5Zregister(&zstd);
    H5Pset_filter(storage.get(), 32015, H5Z_FLAG_MANDATORY, 0, nullptr);
    const Handle dataset(
        H5Dcreate2(file.get(), "x", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, storage.get(), H5P_DEFAULT));
    const std::vector<float> values(20);
    ASSERT_GE(H5Dwrite(dataset.get(), H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  }
  {
    const Hdf5Lock lock;
    ASSERT_GE(H5Zunregister(32015), 0);
  }
  EXPECT_EQ(failure("x"),
            "UNSUPPORTED: '/x' of 'FILE' is compressed with filter 32015 (zstd), which libhdf5 does not have here; "
            "name its plugin folder in "
            "HDF5_PLUGIN_PATH, or rewrite the file: h5repack -f GZIP=4");
}

TEST_F(BrokenFile, DamagedChunk) {
  write_sound(1000, {100}, 6);
  std::string bytes = read_text(path_);
  // The chunks lie behind the metadata: the last quarter of the file holds compressed values.
  for (size_t i = bytes.size() * 3 / 4; i < bytes.size(); ++i) bytes[i] = static_cast<char>(~bytes[i]);
  write_text(path_, bytes);
  EXPECT_EQ(
      failure("/emg2pose/timeseries", {1000}),
      "DATA_CORRUPT: the chunk at [300] of '/emg2pose/timeseries' of 'FILE' is damaged: it does not inflate; copy "
      "the file again or leave it out");
}

TEST_F(BrokenFile, NullDataspaceAndTooManyAxes) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    const Handle null(H5Screate(H5S_NULL));
    const Handle dataset(
        H5Dcreate2(file.get(), "null", H5T_IEEE_F32LE, null.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    write_dataset(file.get(), "deep", H5T_IEEE_F32LE, std::vector<hsize_t>(9, 1), std::vector<float>{1});
  }
  EXPECT_EQ(
      failure("null", {}),
      "UNSUPPORTED: '/null' of 'FILE' is declared without any data (a null dataspace); write it again with its values");
  EXPECT_EQ(failure("deep"), "UNSUPPORTED: '/deep' of 'FILE' has 9 axes; at most 8 can be read");
}

TEST_F(BrokenFile, NullPointersOfAPlugin) {
  hr_error error{};
  hr_array* array = nullptr;
  EXPECT_EQ(arrays_service().open(nullptr, nullptr, "x", &array, &error), HR_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the path is NULL");
  EXPECT_EQ(arrays_service().open(nullptr, "x", "x", nullptr, &error), HR_INVALID_ARGUMENT);
  EXPECT_EQ(arrays_service().info(nullptr, nullptr, &error), HR_INVALID_ARGUMENT);
  arrays_service().close(nullptr);
  write_sound();
  OpenArray open(path_, "/emg2pose/timeseries");
  EXPECT_EQ(arrays_service().read_box(open.get(), nullptr, nullptr, nullptr, 0, nullptr), HR_INVALID_ARGUMENT);
  EXPECT_EQ(open.read({0}, {1}, {{HR_WHOLE, f32, nullptr, 0}}), HR_INVALID_ARGUMENT);
  float out[8];
  EXPECT_EQ(open.read({0}, {2}, {{HR_WHOLE, f32, out, 2}}), HR_INVALID_ARGUMENT) << "elements would overlap";
  EXPECT_EQ(open.read({0}, {2}, {{HR_WHOLE, {kDLFloat, 32, 2}, out, 0}}), HR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace headroom
