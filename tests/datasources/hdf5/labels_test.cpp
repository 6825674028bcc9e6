// Rows of different lengths that were padded, and strings that name classes.
#include <cmath>

#include "one_file.hpp"

namespace headroom {
namespace {

void write_strings(hid_t file, const std::string& name, const std::vector<const char*>& texts) {
  const Handle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), H5T_VARIABLE);
  write_dataset(file, name, type.get(), {texts.size()}, texts);
}

class Labels : public OneHdf5Field {
 protected:
  void write(hid_t file) const override {
    // What the file holds beyond a row's length is whatever its writer left there.
    write_dataset(file, "tokens", H5T_STD_I32LE, {4, 5}, counting<int32_t>(20, 1));
    std::vector<float> points = counting<float>(4 * 3 * 2, 1);
    points[3] = std::nanf("");
    write_dataset(file, "points", H5T_IEEE_F32LE, {4, 3, 2}, points);
    write_dataset(file, "lengths", H5T_STD_U64LE, {4}, std::vector<uint64_t>{1, 3, 0, 2});
    write_dataset(file, "few", H5T_STD_I64LE, {3}, std::vector<int64_t>{1, 3, 0});
    write_dataset(file, "long", H5T_STD_I64LE, {4}, std::vector<int64_t>{1, 6, 0, 2});
    write_strings(file, "kind", {"dog", "cat", "dog", "hen"});
    write_strings(file, "names", {"hen", "dog", "cat"});
    write_dataset(file, "number", H5T_STD_U8LE, {4}, std::vector<uint8_t>{0, 1, 2, 1});
    const Handle opaque(H5Tcreate(H5T_OPAQUE, 2));
    write_dataset(file, "opaque", opaque.get(), {4}, std::vector<uint16_t>(4));
  }
};

TEST_F(Labels, PaddedRowsHaveOneShapeAndAMask) {
  const auto source = open_file(with(R"(name = "t", dataset = "tokens", lengths = "lengths", pad_mask = "is_pad" },
                                { name = "p", dataset = "points", lengths = "/lengths")"));
  EXPECT_EQ(source->fields()[0].shape, std::vector<int64_t>{5});
  EXPECT_EQ(source->fields()[1].shape, (std::vector<int64_t>{3, 2}));
  ASSERT_EQ(source->fields().size(), 3u);
  EXPECT_EQ(source->fields()[2].shape, std::vector<int64_t>{5});
  EXPECT_EQ(dtype_name(source->fields()[2].dtype), "bool");
  const size_t lengths[] = {1, 3, 0, 2};
  for (size_t i = 0; i < 4; ++i) {
    const Sample sample = read_sample(*source, i);
    for (size_t k = 0; k < 5; ++k) {
      EXPECT_EQ(values<int32_t>(sample, "t")[k], k < lengths[i] ? static_cast<int32_t>(5 * i + k + 1) : 0) << i;
      EXPECT_EQ(values<uint8_t>(sample, "is_pad")[k], k < lengths[i] ? 0 : 1) << i;
    }
    // The NaN of the first row lies in its padding.
    for (size_t k = 0; k < 6; ++k) {
      EXPECT_EQ(values<float>(sample, "p")[k], k / 2 < lengths[i] ? static_cast<float>(6 * i + k + 1) : 0.0f) << i;
    }
  }
}

TEST_F(Labels, MasksComeWithoutTheirField) {
  const auto source = open_file(with(R"(name = "t", dataset = "tokens", lengths = "lengths", pad_mask = "is_pad")"));
  Reader reader = source->reader();
  const auto samples =
      read_fields(reader, *source, 0, {3}, {0}, false, [](const std::string& name) { return name == "is_pad"; });
  EXPECT_EQ(values<uint8_t>(samples[0], "is_pad"), (std::vector<uint8_t>{0, 0, 1, 1, 1}));
}

TEST_F(Labels, LengthsThatDoNotSuitAreSentences) {
  EXPECT_EQ(says(R"(name = "t", dataset = "tokens", lengths = "few")"),
            "[hdf5] '/tokens' of DIR/a.h5 (field 't') has 4 rows, but its lengths '/few' are 3; give one for each row");
  EXPECT_EQ(says(R"(name = "n", dataset = "number", lengths = "lengths")"),
            "[hdf5] '/number' of DIR/a.h5 (field 'n') has shape [4]; lengths tell how much of a row's values counts");
  EXPECT_EQ(says(R"(name = "t", dataset = "tokens", lengths = "lengths", rows = "all")"),
            "[hdf5] field 't' sets lengths, which tell how much of one row counts; it needs rows = \"row\" along axis "
            "0, and no permute");
  EXPECT_EQ(refusal("matlab = true\n" + with(R"(name = "t", dataset = "tokens", lengths = "lengths")")),
            "[hdf5] field 't' sets lengths, text_bytes or list_length, which are not for matlab = true, where axes are "
            "reversed");
  const auto source = open_file(with(R"(name = "t", dataset = "tokens", lengths = "long")"));
  Exit code{};
  EXPECT_EQ(sentence_of([&] { read_sample(*source, 1); }, &code),
            "[hdf5] '/tokens' of DIR/a.h5 (field 't') has 5 values a row, but '/long' has 6 for row 1; mend the file");
  EXPECT_EQ(code, Exit::data);
}

TEST_F(Labels, StringsAreNumbersOfTheirClasses) {
  for (const char* classes : {R"(classes = ["hen", "dog", "cat"])", R"(classes_dataset = "names")"}) {
    const auto source = open_file(with(std::string(R"(name = "k", dataset = "kind", )") + classes));
    EXPECT_EQ(dtype_name(source->fields()[0].dtype), "int64");
    EXPECT_EQ(source->fields()[0].shape, std::vector<int64_t>{});
    EXPECT_EQ(source->class_names(0), (std::vector<std::string>{"hen", "dog", "cat"}));
    const int64_t expected[] = {1, 2, 1, 0};
    for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(values<int64_t>(read_sample(*source, i), "k")[0], expected[i]);
  }
  const auto windows = open_file(R"(fields = [
    { name = "k", dataset = "kind", length = 3, pad = "edge", classes_dataset = "/names" } ])");
  EXPECT_EQ(values<int64_t>(read_sample(*windows, 2), "k"), (std::vector<int64_t>{1, 0, 0}));
}

TEST_F(Labels, StringsNeedAnOrderThatIsTold) {
  Exit code{};
  EXPECT_EQ(says(R"(name = "k", dataset = "kind")", &code),
            "[hdf5] '/kind' of DIR/a.h5 (field 'k') holds strings; give them an order, as classes = [\"cat\", \"dog\", "
            "\"hen\"], or set text_bytes");
  EXPECT_EQ(code, Exit::data);
  EXPECT_EQ(
      says(R"(name = "k", dataset = "kind", classes = ["cat", "dog"])"),
      "[hdf5] '/kind' of DIR/a.h5 (field 'k') has 'hen' in row 3, which is none of its 2 classes; add it to them, "
      "or mend the file");
  EXPECT_EQ(says(R"(name = "k", dataset = "kind", classes = ["cat", "cat"])"),
            "[hdf5] field 'k': 'cat' stands twice among its classes");
  EXPECT_EQ(says(R"(name = "k", dataset = "kind", classes_dataset = "kind")"),
            "[hdf5] field 'k': 'dog' stands twice among its classes");
  EXPECT_EQ(says(R"(name = "p", dataset = "points", classes = ["cat", "dog"])"),
            "[hdf5] '/points' of DIR/a.h5 (field 'p') has classes, but a sample holds float32; classes name the values "
            "of integers");
  EXPECT_EQ(
      says(R"(name = "o", dataset = "opaque")"),
      "[hdf5] '/opaque' of DIR/a.h5 (field 'o') holds neither numbers nor strings, nor lists of numbers; no other "
      "values are read");
}

TEST_F(Labels, TextsAreTheirBytes) {
  const auto source = open_file(with(R"(name = "k", dataset = "kind", text_bytes = 5, pad_mask = "is_pad" },
                                { name = "short", dataset = "kind", text_bytes = 2)"));
  EXPECT_EQ(source->fields()[0].shape, std::vector<int64_t>{5});
  EXPECT_EQ(dtype_name(source->fields()[0].dtype), "uint8");
  EXPECT_EQ(source->fields()[2].shape, std::vector<int64_t>{5});
  const Sample sample = read_sample(*source, 1);
  EXPECT_EQ(values<uint8_t>(sample, "k"), (std::vector<uint8_t>{'c', 'a', 't', 0, 0}));
  EXPECT_EQ(values<uint8_t>(sample, "is_pad"), (std::vector<uint8_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(values<uint8_t>(sample, "short"), (std::vector<uint8_t>{'c', 'a'}));
  EXPECT_EQ(says(R"(name = "k", dataset = "kind", text_bytes = 5, dtype = "int64")"),
            "[hdf5] '/kind' of DIR/a.h5 (field 'k') holds strings, whose bytes arrive as uint8; take out dtype = "
            "\"int64\"");
  EXPECT_EQ(says(R"(name = "k", dataset = "kind", text_bytes = 5, rows = "all")"),
            "[hdf5] field 'k' sets text_bytes, which is for a dataset of strings with rows = \"row\", without classes "
            "or attribute");
  EXPECT_EQ(says(R"(name = "n", dataset = "number", text_bytes = 5)"),
            "[hdf5] '/number' of DIR/a.h5 (field 'n') holds numbers; text_bytes is for strings");
}

// Two files in which the same number would mean different things.
TEST_F(Labels, ClassesAreTheSameInEveryFile) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(folder_ / "b.h5");
    write_strings(file.get(), "kind", {"dog"});
    write_strings(file.get(), "names", {"dog", "hen", "cat"});
  }
  EXPECT_EQ(sentence(folder_, with(R"(name = "k", dataset = "kind", classes_dataset = "names")")),
            "[hdf5] '/kind' of DIR/b.h5 (field 'k') has the classes dog, hen and cat, where DIR/a.h5 has the classes "
            "hen, dog and cat; all sequences need the same: leave it out, or mend it");
}

}  // namespace
}  // namespace headroom
