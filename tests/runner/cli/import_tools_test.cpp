// What other programs read: parquet by pyarrow, video by ffmpeg.
#include <cmath>
#include <cstdlib>

#include "imports.hpp"

namespace headroom {
namespace {

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

}  // namespace
}  // namespace headroom
