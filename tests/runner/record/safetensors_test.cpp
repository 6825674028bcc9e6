#include "record/safetensors.hpp"

#include <cstring>
#include <gmock/gmock.h>
#include <random>

#include "error.hpp"
#include "temporary_folder.hpp"

namespace headroom {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class SafetensorsTest : public TemporaryFolder {
 protected:
  std::filesystem::path file(const std::string& header, const std::string& data) {
    uint64_t length = header.size();
    std::string text(reinterpret_cast<const char*>(&length), 8);
    write_text(folder_ / "x.safetensors", text + header + data);
    return folder_ / "x.safetensors";
  }
  std::string refusal(const std::string& header, const std::string& data) {
    auto path = file(header, data);
    try {
      SafetensorsFile loaded(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), Exit::bad_input);
      EXPECT_THAT(error.what(), HasSubstr("[safetensors] " + path.string() + ": "));
      return error.what();
    }
    return "no error";
  }
};

std::string text_of(const TensorBytes& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

TEST_F(SafetensorsTest, EveryElementTypeComesBackBitForBit) {
  const DLDataType dtypes[] = {{kDLFloat, 64, 1}, {kDLFloat, 32, 1}, {kDLFloat, 16, 1}, {kDLBfloat, 16, 1},
                               {kDLInt, 64, 1},   {kDLInt, 32, 1},   {kDLInt, 16, 1},   {kDLInt, 8, 1},
                               {kDLUInt, 64, 1},  {kDLUInt, 32, 1},  {kDLUInt, 16, 1},  {kDLUInt, 8, 1},
                               {kDLBool, 8, 1}};
  std::vector<std::string> contents;
  for (const auto& dtype : dtypes) contents.emplace_back(dtype.bits / 8 * 3, static_cast<char>('a' + contents.size()));
  std::vector<TensorBytes> tensors;
  for (size_t i = 0; i < contents.size(); ++i) {
    tensors.push_back({"t" + std::to_string(i), dtypes[i], {3, 1}, std::as_bytes(std::span(contents[i]))});
  }
  write_safetensors(folder_ / "all.safetensors", tensors, {{"who", "a \"test\"\n"}});

  SafetensorsFile loaded(folder_ / "all.safetensors");
  ASSERT_EQ(loaded.tensors().size(), tensors.size());
  EXPECT_EQ(loaded.metadata(), (std::map<std::string, std::string>{{"who", "a \"test\"\n"}}));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorBytes* found = loaded.find(tensors[i].name);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(std::memcmp(&found->dtype, &tensors[i].dtype, sizeof(DLDataType)), 0) << i;
    EXPECT_EQ(found->shape, (std::vector<int64_t>{3, 1}));
    EXPECT_EQ(text_of(*found), contents[i]);
  }
  EXPECT_EQ(loaded.find("t99"), nullptr);
}

TEST_F(SafetensorsTest, WrittenTensorsAreAlignedToTheirElements) {
  std::string odd(3, 'o'), doubles(16, 'd'), halves(6, 'h');
  std::vector<TensorBytes> tensors = {{"odd", {kDLUInt, 8, 1}, {3}, std::as_bytes(std::span(odd))},
                                      {"halves", {kDLFloat, 16, 1}, {3}, std::as_bytes(std::span(halves))},
                                      {"doubles", {kDLFloat, 64, 1}, {2}, std::as_bytes(std::span(doubles))}};
  for (int i = 0; i < 8; ++i) {  // names of every length move the data unless the header is padded
    tensors[0].name += "x";
    write_safetensors(folder_ / "a.safetensors", tensors);
    SafetensorsFile loaded(folder_ / "a.safetensors");
    for (const auto& tensor : loaded.tensors()) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data.data()) % (tensor.dtype.bits / 8), 0u) << tensor.name;
    }
  }
}

TEST_F(SafetensorsTest, ScalarsEmptyTensorsAndEmptyFilesAreFine) {
  std::string four = "1234";
  write_safetensors(folder_ / "a",
                    std::vector<TensorBytes>{{"scalar", {kDLFloat, 32, 1}, {}, std::as_bytes(std::span(four))},
                                             {"empty", {kDLFloat, 32, 1}, {4, 0, 2}, {}}});
  SafetensorsFile a(folder_ / "a");
  EXPECT_TRUE(a.find("scalar")->shape.empty());
  EXPECT_EQ(a.find("scalar")->data.size(), 4u);
  EXPECT_EQ(a.find("empty")->shape, (std::vector<int64_t>{4, 0, 2}));
  EXPECT_TRUE(a.find("empty")->data.empty());

  write_safetensors(folder_ / "b", {});
  EXPECT_TRUE(SafetensorsFile(folder_ / "b").tensors().empty());
}

TEST_F(SafetensorsTest, AMovedFileKeepsItsSpans) {
  std::string four = "1234";
  write_safetensors(folder_ / "a",
                    std::vector<TensorBytes>{{"x", {kDLFloat, 32, 1}, {1}, std::as_bytes(std::span(four))}});
  SafetensorsFile first(folder_ / "a");
  SafetensorsFile second(std::move(first));
  EXPECT_EQ(text_of(*second.find("x")), "1234");
}

TEST_F(SafetensorsTest, UnalignedFilesOfOthersLoad) {
  SafetensorsFile loaded(file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
                              R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}} )",
                              "bAAAA"));
  EXPECT_EQ(text_of(*loaded.find("a")), "AAAA");
  EXPECT_EQ(loaded.tensors()[0].name, "b") << "tensors are in file order";
}

TEST_F(SafetensorsTest, TensorsThatDoNotFitTheFormatAreAProgrammersMistake) {
  std::string four = "1234";
  auto bytes = std::as_bytes(std::span(four));
  auto saying = [&](std::vector<TensorBytes> tensors) {
    return sentence_of([&] { write_safetensors(folder_ / "a", tensors); });
  };
  EXPECT_THAT(saying({{"x", {kDLFloat, 32, 1}, {2}, bytes}}), HasSubstr("its shape asks for 8 bytes, 4 were given"));
  EXPECT_THAT(saying({{"x", {kDLComplex, 32, 1}, {1}, bytes}}), HasSubstr("no such element type"));
  EXPECT_THAT(saying({{"x", {kDLFloat, 32, 1}, {1}, bytes}, {"x", {kDLFloat, 32, 1}, {1}, bytes}}),
              HasSubstr("the name is taken"));
  EXPECT_THAT(saying({{"\xff", {kDLFloat, 32, 1}, {1}, bytes}}), HasSubstr("not UTF-8"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));
}

TEST_F(SafetensorsTest, DamagedHeadersAreRefusedWithTheReason) {
  auto one = [](const std::string& entry) { return "{\"a\":" + entry + "}"; };
  EXPECT_THAT(refusal("", ""), HasSubstr("its header is not JSON"));
  EXPECT_THAT(refusal("[]", ""), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("{\"a\":", ""), HasSubstr("its header is not JSON"));
  EXPECT_THAT(refusal("{\"\xff\":1}", ""), HasSubstr("its header is not JSON"));
  EXPECT_THAT(refusal(std::string(100000, '['), ""), HasSubstr("nested too deeply"));
  EXPECT_THAT(refusal(one("7"), ""), HasSubstr("tensor \"a\" is described by something else than an object"));
  EXPECT_THAT(refusal(one("{}"), ""), HasSubstr("tensor \"a\" has no dtype"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F31"})"), ""),
              HasSubstr("has the dtype \"F31\"; known are F64, F32, F16, BF16, I64"));
  EXPECT_THAT(refusal(one(R"({"dtype":3})"), ""), HasSubstr("has the dtype something else than a string"));
  EXPECT_THAT(refusal(one(R"({"dtype":"U8"})"), ""), HasSubstr("has no shape"));
  EXPECT_THAT(refusal(one(R"({"dtype":"U8","shape":4})"), ""), HasSubstr("shape is not a list"));
  for (const char* size : {"-1", "1.0", "\"1\"", "null", "1e3"}) {
    EXPECT_THAT(refusal(one(R"({"dtype":"U8","shape":[)" + std::string(size) + "]}"), ""),
                HasSubstr("shape holds something else than sizes"));
  }
  for (const char* shape : {"18446744073709551615", "4294967296,4294967296", "9223372036854775807,2,0"}) {
    EXPECT_THAT(refusal(one(R"({"dtype":"U8","shape":[)" + std::string(shape) + R"(],"data_offsets":[0,0]})"), ""),
                HasSubstr("larger than any file"));
  }
  EXPECT_THAT(refusal(one(R"({"dtype":"U8","shape":[1]})"), "x"), HasSubstr("has no data_offsets"));
  EXPECT_THAT(refusal(one(R"({"dtype":"U8","shape":[1],"data_offsets":[0]})"), "x"),
              HasSubstr("data_offsets is not a list of begin and end"));
  EXPECT_THAT(refusal(one(R"({"dtype":"U8","shape":[1],"data_offsets":[1,0]})"), "x"),
              HasSubstr("its shape asks for 1 bytes, data_offsets are [1,0]"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,1]})"), "x"),
              HasSubstr("its shape asks for 4 bytes, data_offsets are [0,1]"));
  EXPECT_THAT(refusal(one(R"({"dtype":"U8","shape":[2],"data_offsets":[0,2]})"), "x"),
              HasSubstr("is cut off or damaged: tensor \"a\" ends at byte 2 of the data, the file has 1"));
  EXPECT_THAT(refusal(one(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})"), "xyz"),
              HasSubstr("2 bytes follow the last tensor"));
  EXPECT_THAT(refusal(one(R"({"dtype":"U8","shape":[1],"data_offsets":[1,2]})"), "xy"), HasSubstr("leaving a gap"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                      R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                      "xyz"),
              HasSubstr("tensor \"b\" begins at byte 1 of the data, inside the one before it"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                      "x"),
              HasSubstr("holds the name \"a\" twice"));
  EXPECT_THAT(refusal(one(R"({"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]})"), "x"),
              HasSubstr("holds the name \"dtype\" twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":1}})", ""), HasSubstr("holds \"a\", which is not a string"));
  EXPECT_THAT(refusal(R"({"__metadata__":[]})", ""), HasSubstr("__metadata__ is not an object"));
  EXPECT_THAT(refusal("{\"\\u001b[2J" + std::string(300, 'a') + "\":7}", ""),
              HasSubstr("tensor \"\\u001b[2J" + std::string(96, 'a') + "\"... is described"));
}

TEST_F(SafetensorsTest, WhatIsNoFileOfTensorsIsRefused) {
  auto saying = [](const std::filesystem::path& path) { return sentence_of([&] { SafetensorsFile loaded(path); }); };
  EXPECT_THAT(saying(folder_ / "absent"), EndsWith("absent: cannot be opened: No such file or directory"));
  EXPECT_THAT(saying(folder_), HasSubstr("is not a file"));
  EXPECT_THAT(saying("/dev/null"), HasSubstr("is not a file"));
  write_text(folder_ / "short", "1234567");
  EXPECT_THAT(saying(folder_ / "short"), HasSubstr("7 bytes, at least 8 are needed"));
  write_text(folder_ / "words", "this is a text, not a file of tensors");
  EXPECT_THAT(saying(folder_ / "words"), HasSubstr("is not a safetensors file, or cut off: it promises a header of "));
  write_text(folder_ / "huge", std::string(8, '\xff'));
  EXPECT_THAT(saying(folder_ / "huge"), HasSubstr("promises a header of 18446744073709551615 bytes and has 0"));
}

// Every cut and many random changes of a good file either load or are refused; under ASan also without a bad read.
TEST_F(SafetensorsTest, CutAndChangedFilesNeverCrash) {
  std::string a(24, 'a'), b(5, 'b');
  write_safetensors(folder_ / "good",
                    std::vector<TensorBytes>{{"a", {kDLFloat, 64, 1}, {3}, std::as_bytes(std::span(a))},
                                             {"b", {kDLUInt, 8, 1}, {5}, std::as_bytes(std::span(b))}},
                    {{"k", "v"}});
  const std::string good = read_text(folder_ / "good");
  auto touch_all = [&](const std::string& text) {
    std::filesystem::remove(folder_ /
                            "bad");  // ext4 writes a file that is emptied and filled again to the disk at once
    write_text(folder_ / "bad", text);
    try {
      SafetensorsFile loaded(folder_ / "bad");
      for (const auto& tensor : loaded.tensors()) EXPECT_EQ(text_of(tensor).size(), tensor.data.size());
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), Exit::bad_input);
      return false;
    }
  };
  for (size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(touch_all(good.substr(0, length))) << length;
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string changed = good;
    for (int i = 0; i < 1 + round % 3; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    touch_all(changed);
  }
}

TEST_F(SafetensorsTest, GoldenFilesOfThePythonLibraryLoad) {
  const std::filesystem::path golden = std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests" / "golden";
  int files = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(golden, error)) {
    if (entry.path().extension() != ".safetensors") continue;
    SafetensorsFile loaded(entry.path());
    EXPECT_FALSE(loaded.tensors().empty()) << entry.path();
    // Written again and read again, nothing has changed.
    write_safetensors(folder_ / "again", loaded.tensors(), loaded.metadata());
    SafetensorsFile again(folder_ / "again");
    EXPECT_EQ(again.metadata(), loaded.metadata());
    ASSERT_EQ(again.tensors().size(), loaded.tensors().size());
    for (const auto& tensor : loaded.tensors()) {
      const TensorBytes* other = again.find(tensor.name);
      ASSERT_NE(other, nullptr);
      EXPECT_EQ(other->shape, tensor.shape);
      EXPECT_EQ(text_of(*other), text_of(tensor)) << tensor.name;
    }
    ++files;
  }
  if (files == 0) GTEST_SKIP() << "no golden files in " << golden;
}

}  // namespace
}  // namespace headroom
