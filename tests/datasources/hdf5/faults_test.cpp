// Damage and failing disks under a running loader: what is bad is named, and with on_bad_sample = "skip" left out and
// counted; what is not a sample's fault ends the run.

#include <fstream>
#include <unistd.h>

#include "arrays/hdf5_array.hpp"
#include "data/loader.hpp"
#include "faulty_pread.hpp"
#include "hdf5_source.hpp"

namespace headroom {
namespace {

constexpr const char* windows = R"(window_size = 10
stride = 10
jitter = false
fields = [{ name = "x", dataset = "/x" }])";

class SourceFaults : public Hdf5Folder {
 protected:
  void SetUp() override {
    Hdf5Folder::SetUp();
    file_ = folder_ / "a.h5";
    register_data_services();
  }

  // /x: 1000 float32, 0, 1, 2, ..., in chunks of 100.
  void write(bool deflate, bool checksum) const {
    const Hdf5Lock lock;
    const Handle file = create_file(file_);
    const hsize_t rows = 1000, chunk = 100;
    const Handle space(H5Screate_simple(1, &rows, nullptr)), storage(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(storage.get(), 1, &chunk);
    if (deflate) H5Pset_deflate(storage.get(), 6);
    if (checksum) H5Pset_fletcher32(storage.get());
    const Handle dataset(
        H5Dcreate2(file.get(), "x", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, storage.get(), H5P_DEFAULT));
    ASSERT_GE(H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, counting<float>(1000).data()),
              0);
  }

  StoredChunk chunk(size_t number) const {
    const OpenArray array(file_, "x");
    return reinterpret_cast<const Hdf5Array*>(array.get())->plan().chunks.at(number);
  }

  void put(uint64_t offset, const std::string& bytes) const {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
    ASSERT_TRUE(file.good());
  }
  std::string get(uint64_t offset, size_t bytes) const {
    std::ifstream file(file_, std::ios::binary);
    std::string result(bytes, '\0');
    file.seekg(static_cast<std::streamoff>(offset)).read(result.data(), static_cast<std::streamsize>(bytes));
    return result;
  }
  void flip(uint64_t offset) const { put(offset, std::string(1, static_cast<char>(~get(offset, 1)[0]))); }

  std::unique_ptr<Loader> loader(bool skip, int workers) const {
    auto source = open_hdf5(folder_, windows);
    Split split(source->splits().at(0), 0, source->groups(0));
    LoaderOptions options;
    options.batch_size = 8;
    options.num_workers = workers;
    options.skip_bad_samples = skip;
    return std::make_unique<Loader>(source, std::move(split), Normalizer(), options);
  }

  // Without skip the sentence; with it samples [first, last) are missing from all `rows` / 10 of them.
  void expect_bad(uint64_t first, uint64_t last, const std::string& expected, uint64_t rows = 1000) const {
    Exit code = Exit::bug;
    EXPECT_EQ(sentence_of(
                  [&] {
                    const auto strict = loader(false, 0);
                    while (strict->next()) continue;
                  },
                  &code),
              expected);
    EXPECT_EQ(code, Exit::data);
    for (const int workers : {0, 2}) {
      const auto tolerant = loader(true, workers);
      std::vector<uint64_t> got, want;
      while (const auto batch = tolerant->next()) got.insert(got.end(), batch->index.begin(), batch->index.end());
      for (uint64_t i = 0; i < rows / 10; ++i) {
        if (i < first || i >= last) want.push_back(i);
      }
      EXPECT_EQ(got, want) << workers;
      EXPECT_EQ(tolerant->skipped_samples(), last - first) << workers;
    }
  }

  std::filesystem::path file_;
};

TEST_F(SourceFaults, AWrongAdlerChecksum) {
  write(true, false);
  const StoredChunk bad = chunk(3);
  flip(bad.offset + bad.bytes - 1);
  expect_bad(30, 40,
             "[hdf5] the chunk at [300] of '/x' of 'DIR/a.h5' is damaged: it does not inflate; copy the file again or "
             "leave it out (sample 30 of split 'all', group 'a')");
}

TEST_F(SourceFaults, AWrongFletcherChecksum) {
  write(false, true);
  flip(chunk(7).offset + 11);
  expect_bad(
      70, 80,
      "[hdf5] the chunk at [700] of '/x' of 'DIR/a.h5' is damaged: its checksum is wrong; copy the file again or "
      "leave it out (sample 70 of split 'all', group 'a')");
}

TEST_F(SourceFaults, BrokenLzf) {
  std::filesystem::copy_file(HEADROOM_SOURCE_DIR "/tests/golden/data/h5py_lzf.h5", file_);
  put(chunk(0).offset, "\xFF\xFF\xFF\xFF");  // its only chunk
  expect_bad(
      0, 12,
      "[hdf5] the chunk at [0] of '/x' of 'DIR/a.h5' is damaged: its LZF data are broken; copy the file again or "
      "leave it out (sample 0 of split 'all', group 'a')",
      120);
}

TEST_F(SourceFaults, NotANumber) {
  write(false, false);
  put(chunk(5).offset + 4 * 57, std::string("\0\0\xC0\x7F", 4));
  expect_bad(55, 56,
             "[hdf5] '/x' of DIR/a.h5 (field 'x'), value 7 of the sample from row 550 is NaN or infinite; mend the "
             "data, or set "
             "check_finite = false (sample 55 of split 'all', group 'a')");
}

TEST_F(SourceFaults, ADiskThatFailsInTheMiddleIsNoBadSample) {
  write(true, false);
  const StoredChunk bad = chunk(4);
  for (const int workers : {0, 2}) {
    auto running = loader(true, workers);
    const FaultyPread faulty(failing_at(bad.offset, bad.offset + 1, EIO));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(running->next()->count(), 8u);
    Exit code = Exit::bug;
    EXPECT_EQ(sentence_of([&] { running->next(); }, &code),
              "[hdf5] the chunk at [400] of '/x' of 'DIR/a.h5' cannot be read: Input/output error; check the disk "
              "(sample 40 of split 'all', group 'a')");
    EXPECT_EQ(code, Exit::data);
    running.reset();  // its readers use `faulty`
  }
}

TEST_F(SourceFaults, AFileCutInTheMiddle) {
  write(true, false);
  const auto running = loader(true, 0);
  EXPECT_EQ(running->next()->count(), 8u);
  std::filesystem::resize_file(file_, chunk(1).offset);
  Exit code = Exit::bug;
  EXPECT_EQ(sentence_of([&] { running->next(); }, &code),
            "[hdf5] 'DIR/a.h5' was changed or replaced while it was in use; start the run again (sample 8 of split "
            "'all', group 'a')");
  EXPECT_EQ(code, Exit::data);
}

TEST_F(SourceFaults, AFolderThatMayNotBeRead) {
  write(false, false);
  hdf5_plugin();  // lies where another user may not look
  std::filesystem::permissions(folder_, std::filesystem::perms::none);
  const bool root = geteuid() == 0;
  if (root && seteuid(65534) != 0) GTEST_SKIP() << "root cannot become another user here";
  Exit code = Exit::bug;
  const std::string said = sentence(folder_, windows, &code);
  ASSERT_EQ(root ? seteuid(0) : 0, 0);
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
  EXPECT_EQ(said, "[hdf5] cannot list 'DIR/': Permission denied; check the path and its permissions");
  EXPECT_EQ(code, Exit::data);
}

}  // namespace
}  // namespace headroom
