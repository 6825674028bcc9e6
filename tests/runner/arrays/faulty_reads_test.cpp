// Reads that a disk, a network or a signal cuts short or refuses, and files that change under them.

#include <cerrno>
#include <gtest/gtest.h>

#include "arrays/hdf5_array.hpp"
#include "arrays/hdf5_child.hpp"
#include "faulty_pread.hpp"
#include "h5_files.hpp"

namespace headroom {
namespace {

constexpr DLDataType f32{kDLFloat, 32, 1};
constexpr uint64_t rows = 1000;

class FaultyReads : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    path_ = (folder_ / "a.h5").string();
    write_file(path_, 1.0f);
  }
  void TearDown() override {
    set_hdf5_child({});
    TemporaryFolder::TearDown();
  }

  // /x contiguous, /z chunked and deflated, /n chunked behind a filter that only libhdf5 undoes.
  static void write_file(const std::string& path, float first) {
    const Hdf5Lock lock;
    const Handle file = create_file(path);
    write_dataset(file.get(), "x", H5T_IEEE_F32LE, {rows}, values(first));
    write_dataset(file.get(), "z", H5T_IEEE_F32LE, {rows}, values(first), {100}, 5);
    const hsize_t shape = rows, chunk = 100;
    const Handle space(H5Screate_simple(1, &shape, nullptr)), storage(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(storage.get(), 1, &chunk);
    H5Pset_nbit(storage.get());
    const Handle dataset(
        H5Dcreate2(file.get(), "n", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, storage.get(), H5P_DEFAULT));
    ASSERT_GE(H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values(first).data()), 0);
  }
  static std::vector<float> values(float first) {
    std::vector<float> result(rows);
    for (size_t i = 0; i < rows; ++i) result[i] = first + static_cast<float>(i * i % 1009);
    return result;
  }

  // "" or the sentence, with the path as FILE.
  std::string read(OpenArray& array, uint64_t first = 0, uint64_t count = rows) {
    read_.assign(count, -1.0f);
    const hr_status status =
        array.status() == HR_OK ? array.read({first}, {count}, {{HR_WHOLE, f32, read_.data(), 0}}) : array.status();
    if (status == HR_OK) return "";
    status_ = status;
    std::string text = array.message();
    for (size_t at; (at = text.find(path_)) != std::string::npos;) text.replace(at, path_.size(), "FILE");
    return text;
  }

  static uint64_t offset_of(const OpenArray& array) {
    const ArrayPlan& plan = reinterpret_cast<const Hdf5Array*>(array.get())->plan();
    return plan.lane == Lane::contiguous ? plan.offset : plan.chunks[3].offset;
  }

  std::string path_;
  std::vector<float> read_;
  hr_status status_ = HR_OK;
};

TEST_F(FaultyReads, ShortAndInterruptedReadsGoOn) {
  for (const char* name : {"x", "z", "n"}) {
    OpenArray array(path_, name);
    int calls = 0;
    const FaultyPread faulty([&](int file, void* to, size_t bytes, off_t offset) -> ssize_t {
      if (++calls % 3 != 1) return real_pread(file, to, std::min<size_t>(bytes, 11), offset);
      errno = EINTR;
      return -1;
    });
    EXPECT_EQ(read(array), "") << name;
    EXPECT_EQ(read_, values(1.0f)) << name;
    EXPECT_GT(calls, 30) << name;
  }
}

TEST_F(FaultyReads, ADiskThatFailsNamesThePlace) {
  OpenArray x(path_, "x"), z(path_, "z");
  {
    const FaultyPread faulty(failing_at(offset_of(x) + 4 * 500, offset_of(x) + 4 * 501, EIO));
    EXPECT_EQ(read(x, 0, 400), "") << "before the bad place";
    EXPECT_EQ(read(x, 490, 20),
              "'/x' of 'FILE' from [490] for [20] cannot be read: Input/output error; check the disk");
    EXPECT_EQ(status_, HR_IO);
  }
  {
    const FaultyPread faulty(failing_at(offset_of(z), offset_of(z) + 1, EIO));
    EXPECT_EQ(read(z, 0, 300), "");
    EXPECT_EQ(read(z, 250, 100),
              "the chunk at [300] of '/z' of 'FILE' cannot be read: Input/output error; check the disk");
    EXPECT_EQ(status_, HR_IO);
  }
  EXPECT_EQ(read(x) + read(z), "") << "a failure is not kept";
}

TEST_F(FaultyReads, ADiskThatFailsUnderTheLibrary) {
  OpenArray array(path_, "n");
  {
    // The chunks' own bytes alone: 100 values of 4.
    const FaultyPread faulty([](int file, void* to, size_t bytes, off_t offset) -> ssize_t {
      if (bytes != 400) return real_pread(file, to, bytes, offset);
      errno = EIO;
      return -1;
    });
    EXPECT_EQ(read(array), "'/n' of 'FILE' cannot be read from [0] for [1000]: Input/output error; check the disk");
    EXPECT_EQ(status_, HR_IO);
  }
  EXPECT_EQ(read(array), "");
}

TEST_F(FaultyReads, ADiskThatFailsWhenTheLibraryOpensTheFile) {
  OpenArray array(path_, "n");
  const FaultyPread faulty([](int, void*, size_t, off_t) -> ssize_t {
    errno = EIO;
    return -1;
  });
  const std::string said = read(array);
  EXPECT_EQ(status_, HR_IO) << said;
  EXPECT_EQ(said, "'FILE' cannot be read: Input/output error; check the disk");
}

TEST_F(FaultyReads, ADiskThatFailsWhileTheFileIsPlanned) {
  set_hdf5_child(folder_ / "nothing");  // libhdf5 answers in this process
  const FaultyPread faulty([](int, void*, size_t, off_t) -> ssize_t {
    errno = EIO;
    return -1;
  });
  OpenArray array(path_, "x");
  EXPECT_EQ(read(array), "'FILE' cannot be read: Input/output error; check the disk");
  EXPECT_EQ(status_, HR_IO);
}

TEST_F(FaultyReads, AFileThatSeemsToEndEarly) {
  OpenArray x(path_, "x"), z(path_, "z");
  {
    const FaultyPread faulty(failing_at(offset_of(x) + 4 * 500, UINT64_MAX, 0));
    EXPECT_EQ(read(x, 490, 20),
              "'/x' of 'FILE' from [490] for [20] reaches beyond the end of the file; copy it again or leave it out");
    EXPECT_EQ(status_, HR_DATA_CORRUPT);
  }
  const FaultyPread faulty(failing_at(offset_of(z) + 5, UINT64_MAX, 0));
  EXPECT_EQ(read(z, 300, 10),
            "the chunk at [300] of '/z' of 'FILE' reaches beyond the end of the file; copy it again or leave it out");
}

constexpr const char* changed = "'FILE' was changed or replaced while it was in use; start the run again";

TEST_F(FaultyReads, AFileWrittenDuringARead) {
  for (const char* name : {"x", "z", "n"}) {
    write_file(path_, 1.0f);
    OpenArray array(path_, name);
    {
      const FaultyPread faulty([&](int file, void* to, size_t bytes, off_t offset) {
        std::filesystem::resize_file(path_, std::filesystem::file_size(path_) + 1);
        return real_pread(file, to, bytes, offset);
      });
      EXPECT_EQ(read(array), changed) << name << ": what was read may be of either file";
    }
    EXPECT_EQ(read(array), changed) << name;
  }
}

TEST_F(FaultyReads, AReplacedFileIsNotMixedWithTheOldOne) {
  OpenArray before(path_, "x");
  EXPECT_EQ(read(before), "");
  const std::string other = path_ + ".new";
  write_file(other, 7.0f);
  std::filesystem::rename(other, path_);
  EXPECT_EQ(read(before), "") << "its descriptor is still the old file's";
  EXPECT_EQ(read_, values(1.0f));
  OpenArray x(path_, "x"), z(path_, "z");
  EXPECT_EQ(read(x), changed);
  EXPECT_EQ(read(z), changed);
}

TEST_F(FaultyReads, AReplacedFileIsReadOnceTheOldOneIsNotInUse) {
  { OpenArray before(path_, "x"); }
  const std::string other = path_ + ".new";
  write_file(other, 7.0f);
  std::filesystem::rename(other, path_);
  OpenArray x(path_, "x");
  EXPECT_EQ(read(x), "");
  EXPECT_EQ(read_, values(7.0f));
}

TEST_F(FaultyReads, AFileThatVanishes) {
  OpenArray open(path_, "x");
  EXPECT_EQ(read(open), "");
  std::filesystem::remove(path_);
  EXPECT_EQ(read(open), "") << "its descriptor keeps it";
  OpenArray again(path_, "x");
  EXPECT_EQ(read(again), "'FILE' does not exist; check the path");
  EXPECT_EQ(status_, HR_NOT_FOUND);
}

}  // namespace
}  // namespace headroom
