// headroom data convert --from: files as numpy, pyarrow, pandas and ffmpeg write them (tests/golden/imports).
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../../end_to_end/program.hpp"
#include "arrays/h5_files.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path golden = HEADROOM_SOURCE_DIR "/tests/golden/imports";

// What make_files.py calls counting(), as float64.
std::vector<double> counting(size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i) / 4 - 3;
  return values;
}

// Line by line: a program's peak counts what its parent held when it started.
void write_long_table(const fs::path& file, size_t rows) {
  std::ofstream stream(file);
  stream << "a,b\n";
  for (size_t i = 0; i < rows; ++i) stream << i << ',' << i % 97 << ".5\n";
}

class Import : public TemporaryFolder {
 protected:
  Finished convert(std::vector<std::string> words, const std::string& path = "") const {
    words.insert(words.begin(), {"data", "convert"});
    StartPlace place{.folder = folder_, .environment = {}};
    if (!path.empty()) place.environment.push_back("PATH=" + path);
    return headroom_program(std::move(words), place);
  }

  // Converts, and expects a problem of that exit code, of which nothing is left.
  std::string problem(const std::string& file, int exit_code, std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {file, "--out", "bad.hdf5"});
    const Finished finished = convert(std::move(words));
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
    EXPECT_FALSE(fs::exists(folder_ / "bad.hdf5"));
    EXPECT_THAT(hidden(), testing::IsSubsetOf({std::string(".headroom-convert.jsonl")}));
    return finished.err;
  }

  std::vector<std::string> hidden() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (const std::string name = entry.path().filename(); name.starts_with('.')) names.push_back(name);
    }
    return names;
  }

  struct Dataset {
    std::vector<hsize_t> shape;
    std::string type;
    std::vector<double> values;  // {} of bool
    std::vector<std::string> channel_names;
  };

  // By libhdf5 itself.
  Dataset dataset(const std::string& file, const std::string& name) const {
    const Hdf5Lock lock;
    const Handle opened(H5Fopen((folder_ / file).c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    const Handle array(opened ? H5Dopen2(opened.get(), name.c_str(), H5P_DEFAULT) : H5I_INVALID_HID);
    if (!array) return {};
    const Handle space(H5Dget_space(array.get())), type(H5Dget_type(array.get()));
    Dataset read{{}, hdf5_type_name(type.get()), {}, {}};
    read.shape.resize(static_cast<size_t>(H5Sget_simple_extent_ndims(space.get())));
    H5Sget_simple_extent_dims(space.get(), read.shape.data(), nullptr);
    if (H5Tget_class(type.get()) != H5T_ENUM) {
      read.values.resize(static_cast<size_t>(H5Sget_simple_extent_npoints(space.get())));
      H5Dread(array.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.values.data());
    }
    if (H5Aexists(array.get(), "channel_names") <= 0) return read;
    const Handle names(H5Aopen(array.get(), "channel_names", H5P_DEFAULT)), of_name(H5Aget_type(names.get())),
        count(H5Aget_space(names.get()));
    std::vector<char*> texts(static_cast<size_t>(H5Sget_simple_extent_npoints(count.get())));
    H5Aread(names.get(), of_name.get(), texts.data());
    read.channel_names.assign(texts.begin(), texts.end());
    H5Dvlen_reclaim(of_name.get(), count.get(), H5P_DEFAULT, texts.data());
    return read;
  }
};

TEST_F(Import, TablesOfText) {
  // As pandas and spreadsheets write them: an index, a byte order mark, quotes, CRLF, an empty cell.
  write_text(
      folder_ / "a.csv",
      "\xEF\xBB\xBF,emg_0,\"emg_1\",who,\"a,b\"\r\n0,1.5,-2e-3,ann,7\r\n1,,+4,\"bob, jr\",8\r\n\r\n2,nan,1,,9\r\n");
  const Finished finished = convert({"a.csv", "--out", "a.hdf5"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "1 files converted, 0 were done before, 0 could not be read: a.hdf5\n");
  EXPECT_THAT(finished.err, HasSubstr("1 dataset, left out: who"));
  EXPECT_LT(fs::file_size(folder_ / "a.hdf5"), 20'000u);
  const Dataset table = dataset("a.hdf5", "table");
  EXPECT_EQ(table.shape, (std::vector<hsize_t>{3, 4}));
  EXPECT_EQ(table.type, "float64");
  EXPECT_THAT(table.channel_names, ElementsAre("0", "emg_0", "emg_1", "a,b"));
  EXPECT_EQ(table.values[1], 1.5);
  EXPECT_EQ(table.values[2], -2e-3);
  EXPECT_TRUE(std::isnan(table.values[5]) && std::isnan(table.values[9]));
  EXPECT_EQ(table.values[6], 4);
  EXPECT_EQ(table.values[11], 9);

  write_text(folder_ / "semicolons.csv", "1;2\n3;4\n");
  write_text(folder_ / "tabs.tsv", "left, right\tboth\n1\t2\n");
  write_text(folder_ / "unnamed.csv", "0,1,2\n5,6,7\n");
  for (const std::string name : {"semicolons.csv", "tabs.tsv", "unnamed.csv"})
    EXPECT_EQ(convert({name, "--out", name + ".hdf5"}).exit_code, 0);
  EXPECT_THAT(dataset("semicolons.csv.hdf5", "table").values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(dataset("semicolons.csv.hdf5", "table").channel_names, ElementsAre("0", "1"));
  EXPECT_THAT(dataset("tabs.tsv.hdf5", "table").channel_names, ElementsAre("left, right", "both"));
  EXPECT_THAT(dataset("unnamed.csv.hdf5", "table").values, ElementsAre(5, 6, 7));
}

TEST_F(Import, WhatDividesCellsStandsOutsideOfQuotesInTwoRows) {
  write_text(folder_ / "quoted.csv", "\"a\tb, c\";d\n1;2\n");
  write_text(folder_ / "units.csv", "time,force; N\n1,2\n");
  for (const std::string name : {"quoted.csv", "units.csv"}) {
    EXPECT_EQ(convert({name, "--out", name + ".hdf5"}).exit_code, 0);
    EXPECT_THAT(dataset(name + ".hdf5", "table").values, ElementsAre(1, 2));
  }
  EXPECT_THAT(dataset("quoted.csv.hdf5", "table").channel_names, ElementsAre("a\tb, c", "d"));
  EXPECT_THAT(dataset("units.csv.hdf5", "table").channel_names, ElementsAre("time", "force; N"));
  // Decimal commas must not become cells.
  write_text(folder_ / "commas.csv", "1,5;2,5\n3,5;4,5\n");
  EXPECT_THAT(problem("commas.csv", 4), HasSubstr("it has no column of numbers"));
}

TEST_F(Import, ColumnsBecomeDatasets) {
  std::string text = "t,emg_0,emg_1,angle\n";
  for (int i = 0; i < 10000; ++i) text += std::to_string(i) + ",1,2," + std::to_string(i % 7) + "\n";
  write_text(folder_ / "a.csv", text);
  const Finished finished = convert(
      {"a.csv", "--out", "a.hdf5", "--columns", "emg=emg_*", "--columns", "hand/angle=angle,t", "--deflate", "4"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(dataset("a.hdf5", "emg").shape, (std::vector<hsize_t>{10000, 2}));
  const Dataset angle = dataset("a.hdf5", "hand/angle");
  EXPECT_THAT(angle.channel_names, ElementsAre("angle", "t"));
  EXPECT_EQ(angle.values[2 * 9999], 9999 % 7);
  EXPECT_EQ(angle.values[2 * 9999 + 1], 9999);
  EXPECT_LT(fs::file_size(folder_ / "a.hdf5"), 200000u);

  EXPECT_THAT(problem("a.csv", 4, {"--columns", "x=force*"}), HasSubstr("it has no column 'force*' of --columns x"));
  EXPECT_THAT(problem("a.csv", 4, {"--columns", "x=t", "--columns", "x/y=angle"}),
              HasSubstr("it would have datasets '/x' and '/x/y', which one HDF5 file cannot"));
  EXPECT_THAT(problem("a.csv", 4, {"--columns", "/=t"}), HasSubstr("a dataset of it would have no name"));
  EXPECT_THAT(problem("a.csv", 2, {"--columns", "emg"}), HasSubstr("is not DATASET=COLUMN,..."));
}

TEST_F(Import, TablesThatAreNoneAreSentences) {
  const auto said = [&](const std::string& text) {
    write_text(folder_ / "a.csv", text);
    return problem("a.csv", 4);
  };
  EXPECT_THAT(said("a,b\n1,2\n3,x y\n"), HasSubstr("'a.csv' cannot be converted: line 3 has 'x y' in column 'b'"));
  EXPECT_THAT(said("a,b\n1,2\n\n3\n"), HasSubstr("line 4 has 1 cell, the first 2"));
  EXPECT_THAT(said("a,b\n1,2\n3,\"4\n5,6\n"), HasSubstr("line 3 opens a quote that never ends"));
  EXPECT_THAT(said("a,b\n1,2\n1e999,2\n"), HasSubstr("line 3 has '1e999' in column 'a'"));
  EXPECT_THAT(said("a,b\n1,2\n" + std::string(65 << 20, '7')), HasSubstr("line 3 is longer than 64 MiB"));
  EXPECT_THAT(said(""), HasSubstr("it is empty"));
  EXPECT_THAT(said("a,b\n"), HasSubstr("it has names of columns and no rows"));
  EXPECT_THAT(said("a,b\nx,y\n"), HasSubstr("it has no column of numbers"));
}

TEST_F(Import, ArraysOfNumpy) {
  for (const std::string name : {"arrays.npz", "arrays_deflated.npz"}) {
    const Finished finished = convert({golden / name, "--out", name + ".hdf5"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("7 datasets, left out: labels (<U5), nothing (empty)"));
    const auto read = [&](const std::string& dataset_name) { return dataset(name + ".hdf5", dataset_name); };
    EXPECT_EQ(read("emg").type, "float32");
    EXPECT_EQ(read("emg").shape, (std::vector<hsize_t>{200, 3}));
    EXPECT_EQ(read("emg").values, counting(600));
    EXPECT_EQ(read("swapped").type, "float64");
    EXPECT_EQ(read("swapped").values, counting(40));
    EXPECT_EQ(read("columns").shape, (std::vector<hsize_t>{30, 2, 4}));
    EXPECT_EQ(read("columns").values, counting(240));
    EXPECT_EQ(read("half").type, "float32");
    EXPECT_EQ(read("half").values, counting(16));
    EXPECT_EQ(read("good").shape, (std::vector<hsize_t>{16}));
    EXPECT_EQ(read("index").type, "int64");
    EXPECT_EQ(read("index").values[39], 39);
    EXPECT_THAT(read("rate").values, ElementsAre(2000));
  }
  EXPECT_EQ(convert({golden / "columns.npy", "--out", "one.hdf5"}).exit_code, 0);
  EXPECT_EQ(dataset("one.hdf5", "array").values, counting(240));
}

TEST_F(Import, DamagedArraysAreSentences) {
  const std::string whole = read_text(golden / "arrays.npz"), deflated = read_text(golden / "arrays_deflated.npz");
  std::string bent = whole;
  bent[bent.find("NUMPY", bent.find("index.npy")) + 200] ^= 1;
  write_text(folder_ / "a.npz", bent);
  EXPECT_THAT(problem("a.npz", 4), HasSubstr("the checksum of its entry 'index.npy' is another"));
  bent = deflated;
  for (size_t i = 60; i < 90; ++i) bent[i] = static_cast<char>(bent[i] ^ 0x5A);
  write_text(folder_ / "a.npz", bent);
  EXPECT_THAT(problem("a.npz", 4), HasSubstr("emg.npy'"));
  write_text(folder_ / "a.npz", whole.substr(0, whole.size() - 200));
  EXPECT_THAT(problem("a.npz", 4), HasSubstr("is cut off or damaged"));
  write_text(folder_ / "a.npy", read_text(golden / "columns.npy").substr(0, 1000));
  EXPECT_THAT(problem("a.npy", 4), HasSubstr("is cut off"));
}

TEST_F(Import, HeadersOfNumpyThatAreNone) {
  const auto said = [&](const std::string& header) {
    const auto length = static_cast<uint16_t>(header.size());
    std::string file("\x93NUMPY\x01\x00", 8);
    file += {static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
    write_text(folder_ / "a.npy", file + header + std::string(16, '\0'));
    return problem("a.npy", 4);
  };
  EXPECT_THAT(said("{'descr': '" + std::string(60'000, 'x') + "', 'fortran_order': False, 'shape': (1,), }\n"),
              HasSubstr("it has no array of numbers"));
  EXPECT_THAT(said("{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::string(60'000, ' ')),
              HasSubstr("has no shape in its header"));
  EXPECT_THAT(said("{'descr': '<f8', 'fortran_order': False, 'shape': (x,), }\n"),
              HasSubstr("has a shape that cannot be read: (x,)"));
  EXPECT_THAT(said("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n"), HasSubstr("is cut off"));
  EXPECT_THAT(said("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1), }\n"),
              HasSubstr("'array' has 9 axes; 1 to 8 can be written"));
}

TEST_F(Import, Parquet) {
  if (std::system("python3 -c 'import pyarrow.parquet' 2> /dev/null") != 0)
    GTEST_SKIP() << "no pyarrow for python3 here";
  const Finished finished = convert({golden / "episode.parquet", "--out", "a.hdf5"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("3 datasets, left out: task"));
  const Dataset state = dataset("a.hdf5", "observation.state"), table = dataset("a.hdf5", "table");
  EXPECT_EQ(state.type, "float32");
  EXPECT_EQ(state.values, counting(750));
  EXPECT_EQ(dataset("a.hdf5", "action").values, counting(500));
  EXPECT_THAT(dataset("a.hdf5", "action").channel_names, ElementsAre("action_0", "action_1"));
  EXPECT_THAT(table.channel_names, ElementsAre("timestamp", "frame", "done", "force"));
  EXPECT_EQ(table.values[4 * 249], 249 / 4.0 - 3);
  EXPECT_EQ(table.values[4 * 49 + 2], 1);
  EXPECT_TRUE(std::isnan(table.values[4 * 3 + 3]));

  EXPECT_EQ(convert({golden / "episode.parquet", "--out", "b.hdf5", "--columns", "qpos=observation.state"}).exit_code,
            0);
  EXPECT_EQ(dataset("b.hdf5", "qpos").values, counting(750));
  write_text(folder_ / "a.parquet", read_text(golden / "episode.parquet").substr(0, 9000));
  EXPECT_THAT(problem("a.parquet", 4), HasSubstr("pyarrow cannot read it: "));
}

// What python3 gives is read all the same where there is no pyarrow: a stand-in that answers as the script does.
TEST_F(Import, WhatPythonSaysOfAParquetFileIsBelievedToItsEnd) {
  write_text(folder_ / "a.parquet", "PAR1");
  fs::create_directories(folder_ / "bin");
  const auto answered = [&](const std::string& script) {
    write_text(folder_ / "bin/python3", "#!/bin/sh\n" + script);
    fs::permissions(folder_ / "bin/python3", fs::perms::owner_all);
    return convert({"a.parquet", "--out", "a.hdf5"}, (folder_ / "bin").string() + ":/usr/bin:/bin");
  };
  const std::string described =
      R"(printf '%s\n' '{"rows": 3, "columns": [{"name": "n", "code": 1, "bits": 8, "width": 2, "list": true}]}'; )"
      R"([ -z "$5" ] && exit 0; )";
  const Finished cut = answered(described + "printf '{\"rows\": 3}\\nABCD'; echo 'the disk is gone' >&2; exit 1\n");
  EXPECT_EQ(cut.exit_code, 4);
  EXPECT_THAT(cut.err, HasSubstr("'a.parquet' cannot be converted: pyarrow cannot read it: the disk is gone"));
  EXPECT_FALSE(fs::exists(folder_ / "a.hdf5"));
  const Finished absent = answered("exit 17\n");
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_THAT(absent.err, HasSubstr("python3 with pyarrow, which is not there: install it"));
  // More than a pipe holds, and no line: python3 must not wait for a reader that waits for its end.
  EXPECT_EQ(answered("head -c 20000000 /dev/zero | tr '\\0' x\n").exit_code, 4);
  EXPECT_THAT(answered(R"(printf '%s\n' '{"rows": 1, "columns": [{"name": "n", "code": 1, "bits": 8, "width": 1, )"
                       R"("list": false}, {"name": "n", "code": 1, "bits": 8, "width": 1, "list": false}]}')"
                       "\n")
                  .err,
              HasSubstr("it has more than one column 'n'"));
  const Finished whole = answered(described + "printf '{\"rows\": 2}\\nABCD{\"rows\": 1}\\nEF'\n");
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(dataset("a.hdf5", "n").values, ElementsAre(65, 66, 67, 68, 69, 70));
}

// The description alone has more than a MiB.
TEST_F(Import, AParquetFileOfManyColumnsTakesNoMoreMemory) {
  write_text(folder_ / "a.parquet", "PAR1");
  fs::create_directories(folder_ / "bin");
  write_text(folder_ / "bin/python3", R"sh(#!/bin/sh
column() { printf '{"name": "c%s", "code": 1, "bits": 8, "width": 1, "list": false}' "$1"; }
printf '{"rows": 1, "columns": [%s' "$(column 0)"
seq 1 39999 | sed "s/.*/, $(column '&')/" | tr -d '\n'
echo ']}'
[ -z "$5" ] && exit 0
echo "$4" > batch_rows
echo '{"rows": 1}'
head -c 40000 /dev/zero
)sh");
  fs::permissions(folder_ / "bin/python3", fs::perms::owner_all);
  const Finished finished = convert({"a.parquet", "--out", "a.hdf5"}, (folder_ / "bin").string() + ":/usr/bin:/bin");
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(dataset("a.hdf5", "table").shape, (std::vector<hsize_t>{1, 40000}));
  EXPECT_LE(std::stoi(read_text(folder_ / "batch_rows")), (4 << 20) / 8 / 40000);
}

TEST_F(Import, Video) {
  if (std::system("ffmpeg -v error -f lavfi -i color -frames:v 1 -fps_mode passthrough -f null - 2> /dev/null") != 0)
    GTEST_SKIP() << "no ffmpeg of 5.1 or later here";
  EXPECT_EQ(convert({golden / "grey.mkv", "--out", "a.hdf5"}).exit_code, 0);
  const Dataset frames = dataset("a.hdf5", "frames");
  EXPECT_EQ(frames.shape, (std::vector<hsize_t>{12, 16, 24, 3}));
  EXPECT_EQ(frames.type, "uint8");
  for (size_t i = 0; i < frames.values.size(); ++i)
    ASSERT_EQ(frames.values[i], static_cast<double>(i / (16 * 24 * 3) * 10));
  write_text(folder_ / "cut.mkv", read_text(golden / "grey.mkv").substr(0, 1000));
  EXPECT_THAT(problem("cut.mkv", 4), HasSubstr("ffmpeg cannot decode it to its end: "));
}

TEST_F(Import, WhatFfmpegGivesIsBelievedToItsEnd) {
  write_text(folder_ / "a.mp4", "video");
  fs::create_directories(folder_ / "bin");
  const std::string path = (folder_ / "bin").string() + ":/usr/bin:/bin";
  const auto answered = [&](const std::string& script) {
    write_text(folder_ / "bin/ffmpeg", "#!/bin/sh\n" + script);
    fs::permissions(folder_ / "bin/ffmpeg", fs::perms::owner_all);
    return convert({"a.mp4", "--out", "a.hdf5"}, path);
  };
  EXPECT_THAT(answered("printf 'P6\\n2 1\\n255\\nABCDEFP6\\n2 1\\n255\\nGH'; exit 1\n").err,
              HasSubstr("'a.mp4' cannot be converted: ffmpeg cannot decode it to its end: it ended with exit code 1"));
  EXPECT_THAT(answered("printf 'P6\\n2 1\\n255\\nABCDEFP6\\n1 1\\n255\\nGHI'\n").err,
              HasSubstr("its frame 1 has another size"));
  EXPECT_THAT(answered("exit 0\n").err, HasSubstr("it has no frames"));
  EXPECT_FALSE(fs::exists(folder_ / "a.hdf5"));
  EXPECT_EQ(answered("printf 'P6\\n2 1\\n255\\nABCDEFP6\\n2 1\\n255\\nGHIJKL'\n").exit_code, 0);
  EXPECT_EQ(dataset("a.hdf5", "frames").shape, (std::vector<hsize_t>{2, 1, 2, 3}));
  EXPECT_EQ(dataset("a.hdf5", "frames").values[6], 'G');

  fs::remove(folder_ / "bin/ffmpeg");
  const Finished absent = convert({"a.mp4", "--out", "b.hdf5"}, (folder_ / "bin").string());
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_THAT(absent.err, HasSubstr("ffmpeg, which is not in PATH: install it (apt-get install ffmpeg)"));
}

TEST_F(Import, AFolderOnce) {
  fs::create_directories(folder_ / "in/deep");
  write_text(folder_ / "in/a.csv", "a\n1\n");
  write_text(folder_ / "in/deep/b.csv", "a\n2\n");
  write_text(folder_ / "in/bad.csv", "a\nx\n");
  write_text(folder_ / "in/README.md", "# data\n");
  const std::vector<std::string> words = {"in", "--out", "out", "--from", "csv"};
  const Finished first = convert(words);
  EXPECT_EQ(first.exit_code, 4) << first.err;
  EXPECT_EQ(first.out, "2 files converted, 0 were done before, 1 could not be read: out\n");
  EXPECT_THAT(first.err, HasSubstr("'in/bad.csv' cannot be converted"));
  EXPECT_THAT(dataset("out/deep/b.hdf5", "table").values, ElementsAre(2));
  EXPECT_FALSE(fs::exists(folder_ / "out/README.md"));
  EXPECT_EQ(convert(words).out, "0 files converted, 2 were done before, 1 could not be read: out\n");

  const Finished other = convert({"in", "--out", "out", "--from", "csv", "--deflate", "4"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("out/a.hdf5 is there already, and not from this conversion"));
  fs::remove(folder_ / "in/bad.csv");
  write_text(folder_ / "in/a.tsv", "a\n1\n");
  EXPECT_THAT(convert({"in", "--out", "other", "--from", "csv"}).err,
              HasSubstr("would both be written to other/a.hdf5; rename one of them"));
}

TEST_F(Import, EndingsInCapitalLetters) {
  fs::create_directories(folder_ / "in");
  write_text(folder_ / "in/LOG.CSV", "a\n1\n");
  EXPECT_EQ(convert({"in", "--out", "out", "--from", "csv"}).exit_code, 0);
  EXPECT_THAT(dataset("out/LOG.hdf5", "table").values, ElementsAre(1));
  EXPECT_EQ(convert({"in/LOG.CSV", "--out", "log.hdf5"}).exit_code, 0);
}

TEST_F(Import, RefusesWhatCannotBeMeant) {
  write_text(folder_ / "a.csv", "a\n1\n");
  fs::create_directories(folder_ / "in");
  EXPECT_THAT(problem("a.csv", 2, {"--from", "json"}), HasSubstr("is none of csv, numpy, parquet and video"));
  EXPECT_THAT(problem("a.csv", 2, {"--from", "csv", "--source", "emg_hdf5"}), HasSubstr("choose one"));
  EXPECT_THAT(problem("a.csv", 2, {"--chunk", "4"}), HasSubstr("--from takes --deflate alone"));
  EXPECT_THAT(problem("a.csv", 2, {"--from", "numpy", "--columns", "a=a"}), HasSubstr("--columns chooses columns"));
  EXPECT_THAT(problem("a.csv", 2, {"--set", "a=1"}), HasSubstr("name it with --source"));
  EXPECT_THAT(convert({"a.csv", "--out", "b.csv", "--from", "csv"}).err, HasSubstr("let its name end in .hdf5"));
  ASSERT_EQ(::mkfifo((folder_ / "pipe.csv").c_str(), 0600), 0);
  EXPECT_THAT(problem("pipe.csv", 2, {"--from", "csv"}), HasSubstr("pipe.csv is neither a file nor a folder"));
  EXPECT_THAT(convert({"in", "--out", "b", "--from", "video"}).err,
              HasSubstr("no file of the format video lies below"));
}

TEST_F(Import, AFullDiskIsASentence) {
  write_long_table(folder_ / "a.csv", 300'000);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  for (const auto& [room, file] : {std::pair(rlim_t{1} << 20, (folder_ / "a.csv").string()),
                                   std::pair(rlim_t{1000}, (golden / "arrays_deflated.npz").string())}) {
    const rlimit full{room, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
    const std::string said = problem(file, 6);
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_THAT(said, testing::Not(HasSubstr("[bug]")));
    EXPECT_THAT(said, HasSubstr("limit on file sizes"));
  }
}

TEST_F(Import, AKilledOneIsDoneAgain) {
  write_long_table(folder_ / "a.csv", 500'000);
  Program program({"data", "convert", "a.csv", "--out", "a.hdf5"}, {.folder = folder_, .environment = {}});
  const auto begun = [&] {
    return std::ranges::any_of(hidden(), [](const std::string& name) { return name.find(".partial-") != name.npos; });
  };
  ASSERT_TRUE(eventually([&] { return begun() || program.ended(); }));
  program.signal(SIGKILL);
  ASSERT_EQ(program.wait().exit_code, 137) << "it ended before it could be killed";
  ASSERT_TRUE(begun());
  EXPECT_FALSE(fs::exists(folder_ / "a.hdf5"));
  const Finished again = convert({"a.csv", "--out", "a.hdf5"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(dataset("a.hdf5", "table").values[2 * 499'999], 499'999);
  EXPECT_THAT(hidden(), ElementsAre(".headroom-convert.jsonl"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(Import, TakesTheSameMemoryForAnySize) {
  const auto peak = [&](size_t rows) {
    const std::string name = std::to_string(rows);
    write_long_table(folder_ / (name + ".csv"), rows);
    const Finished finished = convert({name + ".csv", "--out", name + ".hdf5"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.peak_resident_bytes;
  };
  const int64_t small = peak(200'000), large = peak(3'000'000);  // 3 and 48 MB of values
  EXPECT_LT(large, small + (16 << 20)) << small;
}
#endif

}  // namespace
}  // namespace headroom
