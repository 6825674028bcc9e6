// headroom data inspect and data convert, as a user meets them.
#include <algorithm>
#include <csignal>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <thread>

#include "../../end_to_end/program.hpp"
#include "arrays/h5_files.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;

class DataCommands : public TemporaryFolder {
 protected:
  Finished data(std::vector<std::string> words) const {
    words.insert(words.begin(), "data");
    return headroom_program(std::move(words), {.folder = folder_, .environment = {}});
  }

  // `rows` records of 40 bytes in chunks of `chunk_rows`; no two files alike.
  void write(const std::string& name, size_t rows, hsize_t chunk_rows = 206, int deflate = 0) const {
    fs::create_directories((folder_ / name).parent_path());
    const Hdf5Lock lock;
    const Handle file = create_file((folder_ / name).string());
    std::vector<float> values(rows * 10);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i + name.size()) * 2654435761u % 999983);
    write_dataset(file.get(), "/emg/samples", H5T_IEEE_F32LE, {rows, 10}, values, {chunk_rows, 10}, deflate);
  }

  std::string stored(const std::string& name) const {
    const Hdf5Lock lock;
    const Handle file(H5Fopen((folder_ / name).c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    const Handle dataset(H5Dopen2(file.get(), "/emg/samples", H5P_DEFAULT));
    const Handle space(dataset ? H5Dget_space(dataset.get()) : H5I_INVALID_HID);
    if (!space) return "none";
    std::string bytes(4 * static_cast<size_t>(H5Sget_simple_extent_npoints(space.get())), '\0');
    H5Dread(dataset.get(), H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
    return bytes;
  }

  std::vector<std::string> names_in(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / folder)) {
      if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(folder_ / folder).string());
    }
    std::ranges::sort(names);
    return names;
  }
};

TEST_F(DataCommands, InspectIsForPeopleAndScripts) {
  write("in/a.hdf5", 1000, 100, 4);
  write_text(folder_ / "in/b.h5", "nothing");
  const Finished people = data({"inspect", "in"});
  EXPECT_EQ(people.exit_code, 4) << people.err;
  EXPECT_THAT(people.out, HasSubstr("in/a.hdf5"));
  EXPECT_THAT(people.out, HasSubstr("/emg/samples  [1000, 10] float32"));
  EXPECT_THAT(people.out, HasSubstr("10 chunks [100, 10] of 3.9 KiB, shuffle+deflate"));
  EXPECT_THAT(people.out, HasSubstr("read: direct chunks"));
  EXPECT_THAT(people.out, HasSubstr("warning: a window of 500 rows touches up to 6 chunks of 100 rows"));
  EXPECT_THAT(people.out, HasSubstr("cannot be read: 'in/b.h5' is not an HDF5 file"));

  const Finished script = data({"inspect", "in", "--json", "--window", "50"});
  const Json json = Json::parse(script.out);
  ASSERT_EQ(json["files"].size(), 2u);
  const Json& dataset = json["files"][0]["datasets"][0];
  EXPECT_EQ(dataset["chunk"], Json({100, 10}));
  EXPECT_EQ(dataset["lane"], "direct chunks");
  EXPECT_EQ(dataset["warnings"].size(), 0u);
  EXPECT_EQ(dataset["filters"][1]["id"], 1);
  EXPECT_THAT(json["files"][1]["problem"].get<std::string>(), HasSubstr("not an HDF5 file"));

  // The same warning once, however many files deserve it.
  write("in/c.hdf5", 2000, 100, 4);
  const std::string of_two = data({"inspect", "in"}).out;
  EXPECT_EQ(of_two.find("warning: a window"), of_two.rfind("warning: a window"));
  EXPECT_THAT(of_two, HasSubstr("\n1 more warning like those above"));
  EXPECT_EQ(Json::parse(data({"inspect", "in", "--json"}).out)["files"][2]["datasets"][0]["warnings"].size(), 1u);

  EXPECT_EQ(data({"inspect", "in/a.hdf5"}).exit_code, 0);
  EXPECT_EQ(data({"inspect", "none"}).exit_code, 2);
  EXPECT_EQ(data({"inspect", "in", "--chunk-cache", "much"}).exit_code, 2);
}

TEST_F(DataCommands, ConvertsAFolderOnce) {
  write("in/a.hdf5", 5000);
  write("in/deep/b.h5", 4000, 300, 2);
  write_text(folder_ / "in/metadata.csv", "filename,split\na,train\n");
  const std::string original = read_text(folder_ / "in/a.hdf5");
  const Finished first = data({"convert", "in", "--out", "out"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, "3 files converted, 0 were done before, 0 could not be read: out\n");
  EXPECT_THAT(first.err, HasSubstr("a.hdf5 (1/3)"));
  EXPECT_THAT(first.err, testing::Not(HasSubstr("\r")));
  EXPECT_THAT(names_in("out"), testing::ElementsAre(".headroom-convert.jsonl", "a.hdf5", "deep/b.h5", "metadata.csv"));
  for (const std::string name : {"a.hdf5", "deep/b.h5"}) EXPECT_EQ(stored("out/" + name), stored("in/" + name));
  EXPECT_EQ(read_text(folder_ / "out/metadata.csv"), "filename,split\na,train\n");
  EXPECT_EQ(read_text(folder_ / "in/a.hdf5"), original);

  const auto written = fs::last_write_time(folder_ / "out/a.hdf5");
  EXPECT_EQ(data({"convert", "in", "--out", "out"}).out,
            "0 files converted, 3 were done before, 0 could not be read: out\n");
  EXPECT_EQ(fs::last_write_time(folder_ / "out/a.hdf5"), written);

  const Finished other = data({"convert", "in", "--out", "out", "--contiguous"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("out/a.hdf5 is there already, and not from this conversion"));
  fs::remove(folder_ / "out/deep/b.h5");
  EXPECT_EQ(data({"convert", "in", "--out", "out"}).out,
            "1 files converted, 2 were done before, 0 could not be read: out\n");
}

TEST_F(DataCommands, AFileBehindAConvertedOneCounts) {
  write("in/b.hdf5", 5000);
  {
    const Hdf5Lock lock;
    const Handle file = create_file((folder_ / "in/a.hdf5").string()), links(H5Pcreate(H5P_LINK_CREATE));
    H5Pset_create_intermediate_group(links.get(), 1);
    const hsize_t shape[] = {5000, 10};
    const Handle space(H5Screate_simple(2, shape, nullptr)), creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_virtual(creation.get(), space.get(), "b.hdf5", "/emg/samples", space.get());
    const Handle dataset(
        H5Dcreate2(file.get(), "/emg/samples", H5T_IEEE_F32LE, space.get(), links.get(), creation.get(), H5P_DEFAULT));
    ASSERT_TRUE(dataset);
  }
  const std::vector<std::string> words = {"convert", "in/a.hdf5", "--out", "out.hdf5"};
  const Finished first = data(words);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(stored("out.hdf5"), stored("in/b.hdf5"));
  EXPECT_EQ(data(words).out, "0 files converted, 1 were done before, 0 could not be read: out.hdf5\n");
  fs::last_write_time(folder_ / "in/b.hdf5", fs::file_time_type::clock::now() + std::chrono::hours(1));
  const Finished later = data(words);
  EXPECT_EQ(later.exit_code, 2);
  EXPECT_THAT(later.err, HasSubstr("out.hdf5 is there already, and not from this conversion"));
}

TEST_F(DataCommands, APluginThatNamesNoPieceIsRefused) {
  write("in/a.hdf5", 2000);
  const Finished finished =
      data({"convert", "in", "--out", "out", "--source", HEADROOM_TEST_PLUGIN_DIR "/hostile_convert.so"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_THAT(finished.err, HasSubstr("the plugin names a piece without its path or without its file"));
}

TEST_F(DataCommands, LinksToFoldersAreFollowed) {
  write("in/a.hdf5", 2000);
  write("elsewhere/b.hdf5", 3000);
  fs::create_directory_symlink("../elsewhere", folder_ / "in/linked");
  fs::create_directory_symlink("../in", folder_ / "elsewhere/back");  // around
  fs::create_directory_symlink("nowhere", folder_ / "in/broken");
  const Finished finished = data({"convert", "in", "--out", "out"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "2 files converted, 0 were done before, 0 could not be read: out\n");
  EXPECT_THAT(names_in("out"), testing::ElementsAre(".headroom-convert.jsonl", "a.hdf5", "linked/b.hdf5"));
  EXPECT_EQ(stored("out/linked/b.hdf5"), stored("elsewhere/b.hdf5"));
  EXPECT_EQ(Json::parse(data({"inspect", "in", "--json"}).out)["files"].size(), 2u);
}

TEST_F(DataCommands, ConvertRefusesWhatCannotBeMeant) {
  write("a.hdf5", 1000);
  fs::create_directories(folder_ / "in");
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "convert");
    const Finished finished = data(std::move(words));
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    return finished.err;
  };
  EXPECT_THAT(refused({"a.hdf5", "--out", "./a.hdf5"}), HasSubstr("the original is never overwritten"));
  EXPECT_THAT(refused({"none", "--out", "b"}), HasSubstr("none does not exist"));
  EXPECT_THAT(refused({"in", "--out", "in/out"}), HasSubstr("lies inside"));
  EXPECT_THAT(refused({"in", "--out", "b"}), HasSubstr("there is no file in "));
  EXPECT_THAT(refused({"a.hdf5", "--out", "in"}), HasSubstr("is a folder; name the file"));
  EXPECT_THAT(refused({"a.hdf5", "--out", "b", "--contiguous", "--deflate", "4"}), HasSubstr("choose one"));
  EXPECT_THAT(refused({"a.hdf5", "--out", "b", "--shuffle"}), HasSubstr("add --deflate"));
  refused({"a.hdf5", "--out", "b", "--deflate", "10"});
  refused({"a.hdf5", "--out", "b", "--chunk", "0"});
  EXPECT_FALSE(fs::exists(folder_ / "b"));
}

TEST_F(DataCommands, AFolderThatCannotBeListedToItsEndIsASentence) {
  write("in/a.hdf5", 2000);
  fs::path deep = folder_ / "in";
  for (int i = 0; i < 300; ++i) deep /= "d";
  fs::create_directories(deep);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  // Fewer than there are folders in each other: listing holds all of them open.
  const rlimit few{256, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const Finished finished = data({"convert", "in", "--out", "out"});
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(finished.exit_code, 2) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("in cannot be listed: Too many open files"));
}

TEST_F(DataCommands, AKilledConversionIsDoneAgain) {
  write("in/a.hdf5", 2000);
  write("in/b.hdf5", 200000);
  Program program({"data", "convert", "in", "--out", "out", "--deflate", "9"}, {.folder = folder_, .environment = {}});
  ASSERT_TRUE(eventually([&] { return fs::exists(folder_ / "out/.b.hdf5.converting") || program.ended(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  program.signal(SIGKILL);
  const Finished killed = program.wait();
  ASSERT_EQ(killed.exit_code, 137) << "it ended before it could be killed";
  EXPECT_FALSE(fs::exists(folder_ / "out/b.hdf5"));
  const auto written = fs::last_write_time(folder_ / "out/a.hdf5");
  const Finished again = data({"convert", "in", "--out", "out", "--deflate", "9"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, "1 files converted, 1 were done before, 0 could not be read: out\n");
  EXPECT_EQ(fs::last_write_time(folder_ / "out/a.hdf5"), written);
  EXPECT_EQ(stored("out/b.hdf5"), stored("in/b.hdf5"));
  EXPECT_THAT(names_in("out"), testing::ElementsAre(".headroom-convert.jsonl", "a.hdf5", "b.hdf5"));
}

TEST_F(DataCommands, AFullDiskIsASentence) {
  write("a.hdf5", 100000);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  for (const rlim_t room : {rlim_t{1000}, rlim_t{1} << 20}) {
    const rlimit full{room, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
    const Finished finished = data({"convert", "a.hdf5", "--out", "out/b.hdf5"});
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(finished.exit_code, 6) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("the limit on file sizes is too low"));
    EXPECT_THAT(finished.err, testing::Not(HasSubstr("[bug]")));
    EXPECT_THAT(names_in("out"), testing::ElementsAre());
  }
}

TEST_F(DataCommands, DamagedFilesAreSentencesAndOthersAreConverted) {
  write("in/a.hdf5", 3000, 500, 4);
  write("in/b.hdf5", 3000);
  write("in/c.hdf5", 3000);
  std::string bytes = read_text(folder_ / "in/a.hdf5");
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 64; ++i) bytes[i] = static_cast<char>(bytes[i] ^ 0x5A);
  write_text(folder_ / "in/a.hdf5", bytes);
  fs::resize_file(folder_ / "in/b.hdf5", 4000);
  const Finished finished = data({"convert", "in", "--out", "out", "--contiguous"});
  EXPECT_EQ(finished.exit_code, 4) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("in/a.hdf5' is damaged"));
  EXPECT_THAT(finished.err, HasSubstr("in/b.hdf5' is truncated"));
  EXPECT_EQ(finished.out, "1 files converted, 0 were done before, 2 could not be read: out\n");
  EXPECT_THAT(names_in("out"), testing::ElementsAre(".headroom-convert.jsonl", "c.hdf5"));
  const Finished alone = data({"convert", "in/b.hdf5", "--out", "b.hdf5"});
  EXPECT_EQ(alone.exit_code, 4);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(DataCommands, ConvertTakesTheSameMemoryForAnySize) {
  write("small.hdf5", 600000, 4096, 1);
  write("large.hdf5", 2400000, 4096, 1);
  const auto peak = [&](const std::string& name) {
    const Finished finished = data({"convert", name, "--out", "out/" + name, "--contiguous"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.peak_resident_bytes;
  };
  const int64_t small = peak("small.hdf5"), large = peak("large.hdf5");
  EXPECT_LT(large, small + (24 << 20)) << small;
  EXPECT_LT(large, int64_t{200} << 20);
}
#endif

}  // namespace
}  // namespace headroom
