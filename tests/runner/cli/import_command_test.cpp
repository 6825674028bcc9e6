// What headroom data convert --from does with files of any format: folders, refusals, a full disk, memory.
#include <algorithm>
#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>

#include "imports.hpp"

namespace headroom {
namespace {

// Line by line: a program's peak counts what its parent held when it started.
void write_long_table(const fs::path& file, size_t rows) {
  std::ofstream stream(file);
  stream << "a,b\n";
  for (size_t i = 0; i < rows; ++i) stream << i << ',' << i % 97 << ".5\n";
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
  EXPECT_THAT(convert({"in", "--out", "b", "--from", "video"}).err, HasSubstr("no file of the format video is in "));
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
