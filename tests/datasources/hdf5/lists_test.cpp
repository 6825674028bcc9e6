// Lists of numbers, each of its own length (HDF5's vlen, h5py's vlen_dtype).
#include <cmath>

#include "one_file.hpp"

namespace headroom {
namespace {

using Tokens = std::vector<std::vector<int32_t>>;

class VariableLists : public OneHdf5Field {
 protected:
  void write(hid_t file) const override {
    write_lists<int32_t>(file, "tokens", H5T_STD_I32LE, {4}, tokens_);
    write_lists<int32_t>(file, "packed", H5T_STD_I16BE, {4}, tokens_, {2}, 4);
    write_lists<float>(file, "points", H5T_IEEE_F64LE, {4}, {{0.5f}, {}, {1.5f, std::nanf("")}, {2.5f, 3.5f, 4.5f}});
    write_dataset(file, "number", H5T_STD_U8LE, {4}, std::vector<uint8_t>{0, 1, 2, 1});
    const Handle grid(H5Tvlen_create(H5T_STD_I32LE));
    write_dataset(file, "grid", grid.get(), {2, 2}, std::vector<hvl_t>(4));
  }

  const Tokens tokens_ = {{7}, {1, 2, 3}, {}, {4, -5}};
};

TEST_F(VariableLists, AreRowsOfOneLengthAndAMask) {
  for (const char* dataset : {"tokens", "packed"}) {
    const auto source = open_file(
        with("name = \"t\", dataset = \"" + std::string(dataset) + "\", list_length = 4, pad_mask = \"is_pad\""));
    ASSERT_EQ(source->fields().size(), 2u);
    EXPECT_EQ(source->fields()[0].shape, std::vector<int64_t>{4});
    EXPECT_EQ(source->fields()[1].shape, std::vector<int64_t>{4});
    EXPECT_EQ(dtype_name(source->fields()[0].dtype), dataset == std::string("tokens") ? "int32" : "int16");
    for (size_t i = 0; i < 4; ++i) {
      const Sample sample = read_sample(*source, i);
      for (size_t k = 0; k < 4; ++k) {
        const bool there = k < tokens_[i].size();
        const int32_t expected = there ? tokens_[i][k] : 0;
        EXPECT_EQ(dataset == std::string("tokens") ? values<int32_t>(sample, "t")[k] : values<int16_t>(sample, "t")[k],
                  expected)
            << dataset << " " << i;
        EXPECT_EQ(values<uint8_t>(sample, "is_pad")[k], there ? 0 : 1) << dataset << " " << i;
      }
    }
  }
}

TEST_F(VariableLists, ComeAsAWiderTypeAndTheirMaskAlone) {
  const auto source = open_file(with(
      R"(name = "t", dataset = "tokens", dtype = "int64", list_length = 3, pad_mask = "is_pad", classes = ["a", "b"])"));
  EXPECT_EQ(values<int64_t>(read_sample(*source, 1), "t"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(source->class_names(0), (std::vector<std::string>{"a", "b"}));
  Reader reader = source->reader();
  const auto samples =
      read_fields(reader, *source, 0, {3}, {0}, false, [](const std::string& name) { return name == "is_pad"; });
  EXPECT_EQ(values<uint8_t>(samples[0], "is_pad"), (std::vector<uint8_t>{0, 0, 1}));
}

// A row before the sequence's first has no list.
TEST_F(VariableLists, OfARowThatIsPaddingAreEmpty) {
  const auto source = open_file(
      R"(fields = [ { name = "t", dataset = "tokens", rows = "row", offset = -1, pad = "zeros", list_length = 3, )"
      R"(pad_mask = "is_pad" } ])");
  EXPECT_EQ(values<uint8_t>(read_sample(*source, 0), "is_pad"), (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(values<int32_t>(read_sample(*source, 2), "t"), (std::vector<int32_t>{1, 2, 3}));
}

TEST_F(VariableLists, LongerOnesAreAnErrorOrCut) {
  Exit code{};
  EXPECT_EQ(says(R"(name = "t", dataset = "tokens", list_length = 2)", &code),
            "[hdf5] '/tokens' of DIR/a.h5 (field 't') has a list of 3 values in row 1, but list_length is 2; raise it, "
            "or set cut_lists = true");
  EXPECT_EQ(code, Exit::data);
  const auto source = open_file(with(R"(name = "t", dataset = "tokens", list_length = 2, cut_lists = true)"));
  EXPECT_EQ(values<int32_t>(read_sample(*source, 1), "t"), (std::vector<int32_t>{1, 2}));
}

TEST_F(VariableLists, ANaNIsNamedWithItsRow) {
  const auto source = open_file(with(R"(name = "p", dataset = "points", list_length = 3)"));
  EXPECT_EQ(dtype_name(source->fields()[0].dtype), "float32");
  EXPECT_EQ(values<float>(read_sample(*source, 3), "p"), (std::vector<float>{2.5f, 3.5f, 4.5f}));
  EXPECT_EQ(sentence_of([&] { read_sample(*source, 2); }),
            "[hdf5] '/points' of DIR/a.h5 (field 'p'), value 1 of the sample from row 2 is NaN or infinite; mend the "
            "data, or set check_finite = false");
}

TEST_F(VariableLists, WhatDoesNotSuitIsASentence) {
  Exit code{};
  EXPECT_EQ(says(R"(name = "t", dataset = "tokens")", &code),
            "[hdf5] '/tokens' of DIR/a.h5 (field 't') holds lists of numbers, each of its own length (the longest has "
            "3); with rows = \"row\" and list_length = 3 they arrive as so many values each, followed by zeros");
  EXPECT_EQ(code, Exit::data);
  EXPECT_EQ(says(R"(name = "n", dataset = "number", list_length = 3)"),
            "[hdf5] '/number' of DIR/a.h5 (field 'n') does not hold lists of numbers; list_length is for these");
  EXPECT_EQ(says(R"(name = "g", dataset = "grid", list_length = 3)"),
            "[hdf5] '/grid' of DIR/a.h5 (field 'g') has shape [2, 2]; lists are read from one axis");
  EXPECT_EQ(says(R"(name = "t", dataset = "tokens", list_length = 3, dtype = "uint8")"),
            "[hdf5] field 't': '/tokens' of 'DIR/a.h5' holds lists of int32, which does not convert to uint8 without "
            "loss; ask for a float or a wider type");
  EXPECT_EQ(says(R"(name = "t", dataset = "tokens", list_length = 3, rows = "all")"),
            "[hdf5] field 't' sets list_length, which is for a dataset of lists with rows = \"row\", without member, "
            "attribute, lengths, text_bytes or permute");
  EXPECT_EQ(says(R"(name = "t", dataset = "tokens", cut_lists = true)"),
            "[hdf5] field 't' sets cut_lists without list_length; set both, or none");
}

}  // namespace
}  // namespace headroom
