#include "emg_hdf5/csv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>

namespace emg_hdf5 {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows(std::string_view text) {
  CsvReader csv(text);
  Rows all;
  for (std::vector<std::string> fields; csv.next(fields);) all.push_back(fields);
  return all;
}

TEST(Csv, SplitsAtCommas) { EXPECT_EQ(rows("a,b,\n,1,2 3\n"), (Rows{{"a", "b", ""}, {"", "1", "2 3"}})); }

TEST(Csv, KeepsCommasQuotesAndLineEndsInsideQuotes) {
  EXPECT_EQ(rows("\"a,b\",\"say \"\"hi\"\"\",\"1\n2\"\nx,y,z"), (Rows{{"a,b", "say \"hi\"", "1\n2"}, {"x", "y", "z"}}));
}

TEST(Csv, TakesWindowsFilesAndBlankLines) {
  EXPECT_EQ(rows("\xEF\xBB\xBF"
                 "a,b\r\n\r\n1,2\r\n\n"),
            (Rows{{"a", "b"}, {"1", "2"}}));
}

TEST(Csv, IsEmptyWhenTheFileIs) { EXPECT_THAT(rows(""), testing::IsEmpty()); }

TEST(Csv, CountsLinesThroughQuotesAndBlanks) {
  CsvReader csv("a\n\"1\n2\"\n\nb\n");
  std::vector<std::string> fields;
  for (const std::size_t line : {1, 2, 5}) {
    ASSERT_TRUE(csv.next(fields));
    EXPECT_EQ(csv.line(), line);
  }
}

TEST(Csv, RefusesAQuoteThatNeverEnds) { EXPECT_THROW(rows("a,b\n1,\"2\n"), std::invalid_argument); }

}  // namespace
}  // namespace emg_hdf5
