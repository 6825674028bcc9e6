// Tables of text.
#include <cmath>

#include "imports.hpp"

namespace headroom {
namespace {

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

}  // namespace
}  // namespace headroom
