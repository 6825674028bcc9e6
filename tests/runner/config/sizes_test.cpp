#include "config/sizes.hpp"

#include <gtest/gtest.h>

#include "config/literals.hpp"

namespace headroom {

namespace {

TEST(Bytes, UnitsAreDecimalOrBinary) {
  EXPECT_EQ(parse_bytes("64 MiB"), 64 << 20);
  EXPECT_EQ(parse_bytes("64 MB"), 64'000'000);
  EXPECT_EQ(parse_bytes("1 KiB"), 1024);
  EXPECT_EQ(parse_bytes("1 kB"), 1000);
  EXPECT_EQ(parse_bytes("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(parse_bytes(" 3  tib "), int64_t{3} << 40);
  EXPECT_EQ(parse_bytes("1 TB"), 1'000'000'000'000);
  EXPECT_EQ(parse_bytes("0 B"), 0);
  EXPECT_EQ(parse_bytes("17"), 17);
}

TEST(Bytes, FractionsLosePartsOfAByte) {
  EXPECT_EQ(parse_bytes("1.5 GiB"), 3 * (int64_t{1} << 29));
  EXPECT_EQ(parse_bytes("0.3 KiB"), 307);
}

TEST(Bytes, WholeNumbersAreExactBeyondDoubles) { EXPECT_EQ(parse_bytes("9223372036854775807"), INT64_MAX); }

TEST(Bytes, EverythingElseIsRefused) {
  for (const char* text : {"", " ", "MiB", "64 Mi", "64 M", "-1 MiB", "+1 MiB", "1e3", "0x10", "1,5 GiB", "1.2.3 MiB",
                           "64 MiB x", "nan", "inf", "9223372036854775808", "9000000 TiB", "1 MiB 2"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(Bytes, FormattedReadsBack) {
  EXPECT_EQ(format_bytes(64 << 20), "64 MiB");
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1536), "1536 B");
  for (const int64_t bytes :
       {int64_t{0}, int64_t{1}, int64_t{1023}, int64_t{1024}, int64_t{1} << 40, (int64_t{1} << 40) + 1, INT64_MAX}) {
    EXPECT_EQ(parse_bytes(format_bytes(bytes)), bytes);
  }
}

TEST(Durations, UnitsAndPlainSeconds) {
  EXPECT_EQ(parse_duration("10 min"), 600);
  EXPECT_EQ(parse_duration("1.5 h"), 5400);
  EXPECT_EQ(parse_duration("250 ms"), 0.25);
  EXPECT_EQ(parse_duration("2 d"), 172800);
  EXPECT_EQ(parse_duration("30"), 30);
  EXPECT_EQ(parse_duration("30s"), 30);
  for (const char* text : {"", "min", "-1 s", "1 m", "ten min", "1 min 5 s"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(Durations, FormattedReadsBack) {
  EXPECT_EQ(format_duration(600), "10 min");
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(90), "90 s");
  for (const double seconds : {0.0, 0.1, 1.0 / 3, 59.0, 3600.0, 86400.0, 1e9}) {
    EXPECT_EQ(parse_duration(format_duration(seconds)), seconds);
  }
}

TEST(Shares, AreAboveNoneAndUpToAll) {
  EXPECT_EQ(parse_share("80%"), 0.8);
  EXPECT_EQ(parse_share("12.5 %"), 0.125);
  EXPECT_EQ(parse_share("100%"), 1.0);
  for (const char* text : {"0%", "101%", "80", "%", "-5%"}) EXPECT_EQ(parse_share(text), std::nullopt) << text;
}

TEST(Limits, AreWordsSharesOrBytesInDigits) {
  EXPECT_EQ(parse_limit("auto"), "auto");
  EXPECT_EQ(parse_limit(" off "), "off");
  EXPECT_EQ(parse_limit("80 %"), "80%");
  EXPECT_EQ(parse_limit("12.5%"), "12.5%");
  EXPECT_EQ(parse_limit("2 GiB"), "2147483648");
  EXPECT_EQ(parse_limit("1000000"), "1000000");
  for (const char* text : {"", "Auto", "0", "0 B", "0%", "101%", "-1", "8 G", "80%%"}) {
    EXPECT_EQ(parse_limit(text), std::nullopt) << text;
  }
  EXPECT_EQ(format_limit("2147483648"), "2 GiB");
  for (const char* text : {"auto", "off", "80%", "12.5%", "1000001", "9223372036854775807"}) {
    EXPECT_EQ(parse_limit(format_limit(text)), text);
  }
}

TEST(Literals, NumbersReadBackWithTheFewestDigits) {
  EXPECT_EQ(number_literal(5), "5.0");
  EXPECT_EQ(number_literal(0.0005), "5e-4");
  EXPECT_EQ(number_literal(1e-100), "1e-100");
  EXPECT_EQ(number_literal(1e22), "1e+22");
  EXPECT_EQ(number_literal(-0.1), "-0.1");
  for (const double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 1e15, 123456789.125}) {
    const toml::table table = parse_literal(number_literal(value));
    ASSERT_TRUE(table["value"].is_floating_point()) << number_literal(value);
    EXPECT_EQ(*table["value"].value<double>(), value);
  }
}

TEST(Literals, StringsReadBack) {
  for (const std::string& text :
       {std::string("plain"), std::string("a \"b\" \\ c"), std::string("tab\tline\nreturn\r"), std::string("\x01\x7f"),
        std::string("\xC3\xA9\xE2\x82\xAC"), std::string("# = [ ]"), std::string()}) {
    const toml::table table = parse_literal(quote(text));
    EXPECT_EQ(*table["value"].value<std::string>(), text);
  }
}

TEST(Literals, TablesListsAndDatesReadBack) {
  const char* text =
      "{ \"a b\" = [1, 2.5, \"x\"], c = { d = true }, when = 2024-02-29T12:30:00Z, day = 1979-05-27, at = 07:32:00 }";
  const toml::table first = parse_literal(text);
  const toml::table second = parse_literal(literal(*first.get("value")));
  EXPECT_EQ(first, second);
}

}  // namespace

}  // namespace headroom
