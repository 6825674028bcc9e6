// Copies of plain datasets, and of sources that hold their arrays open or say what is not so. The emg_hdf5 plugin's own
// test has compounds, places and faults.

#include "data/normalized_copies.hpp"

#include <cmath>

#include "../arrays/h5_files.hpp"
#include "../plugins/process_host.hpp"
#include "arrays/array_session.hpp"
#include "data/services.hpp"
#include "data/slots.hpp"
#include "headroom/datasource.hpp"

namespace headroom {
namespace {

constexpr uint64_t rows = 200, channels = 3;

// Rows of /x, one a sample, through an array that is open from the start, or opened by each reader.
struct Rows {
  static inline std::string file;
  static inline bool holds = false, adds_one = false, two_fields = false;
  static inline DLDataType dtype = sdk::f32;

  Rows(const sdk::Host& host, const sdk::Options&) : host_(host) {
    if (holds) held_ = std::make_shared<sdk::Array>(host_, file, "x");
  }
  std::vector<sdk::Field> fields() const {
    std::vector<sdk::Field> all;
    for (const char* name : {"a", "b"}) {
      all.push_back({.name = name, .dtype = dtype, .shape = {channels}, .channel_axis = 0, .normalize = true});
      if (!two_fields) break;
    }
    return all;
  }
  uint64_t length() const { return rows; }
  std::vector<sdk::Origin> origins(uint32_t) const { return {{file, "/x", ""}}; }
  struct RowReader {
    std::shared_ptr<sdk::Array> array;
    void read(const sdk::ReadRequest& request) {
      for (uint64_t i = 0; i < request.count(); ++i) {
        if (same(dtype, sdk::f32)) read_row<float>(request, i);
        if (same(dtype, sdk::f64)) read_row<double>(request, i);
      }
    }
    static bool same(DLDataType a, DLDataType b) { return sdk::same_type(a, b); }
    template <class T>
    void read_row(const sdk::ReadRequest& request, uint64_t i) {
      const auto slot = request.slot<T>(0, i);
      const hr_array_target targets[] = {sdk::target(slot.data(), HR_WHOLE)};
      array->read_rows(request.index(i), 1, targets);
      for (T& value : slot) value += adds_one ? T{1} : T{0};
      if (two_fields) std::ranges::copy(slot, request.slot<T>(1, i).begin());
    }
  };
  RowReader make_reader() const { return {held_ ? held_ : std::make_shared<sdk::Array>(host_, file, "x")}; }

  sdk::Host host_;
  std::shared_ptr<sdk::Array> held_;
};

class CopiesOfRows : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    register_data_services();
    Rows::file = (folder_ / "rows.h5").string();
    Rows::holds = Rows::adds_one = Rows::two_fields = false;
    Rows::dtype = sdk::f32;
  }
  void TearDown() override {
    ArraySession::of_process()->substitute({});
    TemporaryFolder::TearDown();
  }

  template <class T>
  void write(hid_t type) {
    std::vector<T> values;
    for (uint64_t i = 0; i < rows * channels; ++i)
      values.push_back(static_cast<T>(1.1 * std::sin(0.7 * static_cast<double>(i)) + static_cast<double>(i % 3)));
    const Handle file = create_file(Rows::file);
    write_dataset<T>(file.get(), "/x", type, {rows, channels}, values, {16, channels}, 4);
  }

  static std::shared_ptr<const Source> open() {
    const auto* api = static_cast<const hr_datasource*>(sdk::detail::SourceTable<Rows>::find(HR_DATASOURCE));
    return Source::open(*api, "rows", nullptr);
  }
  static Normalizer measured(const Source& source) {
    return Normalizer::measure(source, {"train", 0, source.groups(0)}, "exact", 0);
  }
  static std::string all_of(const Source& source, const Normalizer& left) {
    Slot slot(source.fields(), rows);
    std::vector<uint64_t> index(rows), key(rows, 1);
    for (uint64_t i = 0; i < rows; ++i) index[i] = i;
    const auto tensors = slot.tensors(0, rows);
    source.reader().read(0, index, key, false, tensors);
    left.apply(source.fields(), tensors);
    return {static_cast<const char*>(tensors[0].data), rows * static_cast<size_t>(source.fields()[0].bytes())};
  }
  NormalizedCopies use(const std::shared_ptr<const Source>& source, const Normalizer& normalizer) {
    const auto reopen = [this] {
      ++reopened_;
      return open();
    };
    return use_normalized_copies(source, normalizer, reopen, [](const std::string&) {});
  }

  void expect_the_same() {
    const auto source = open();
    const Normalizer normalizer = measured(*source);
    const std::string expected = all_of(*source, normalizer);
    const NormalizedCopies copies = use(source, normalizer);
    ASSERT_EQ(copies.fields, std::vector<std::string>{"a"}) << testing::PrintToString(copies.lines);
    EXPECT_TRUE(all_of(*copies.source, {}) == expected);
    EXPECT_TRUE(std::filesystem::exists(Rows::file + ".normalized.h5"));
  }

  int reopened_ = 0;
};

TEST_F(CopiesOfRows, GiveTheSameValuesToTheBit) {
  write<float>(H5T_IEEE_F32LE);
  expect_the_same();
  EXPECT_EQ(reopened_, 0);
}

TEST_F(CopiesOfRows, WiderOnDiskThanInTheField) {
  write<double>(H5T_IEEE_F64LE);
  expect_the_same();
}

TEST_F(CopiesOfRows, WideOnDiskAndInTheField) {
  Rows::dtype = sdk::f64;
  write<double>(H5T_IEEE_F64LE);
  expect_the_same();
}

TEST_F(CopiesOfRows, ASourceThatHoldsItsArraysIsOpenedAgain) {
  Rows::holds = true;
  write<float>(H5T_IEEE_F32LE);
  expect_the_same();
  EXPECT_EQ(reopened_, 1);
}

void expect_not_used(const NormalizedCopies& copies, const std::shared_ptr<const Source>& source,
                     const std::string& why) {
  EXPECT_TRUE(copies.fields.empty());
  EXPECT_EQ(copies.source, source);
  ASSERT_EQ(copies.lines.size(), 1u);
  EXPECT_NE(copies.lines[0].find("normalised copies: not used, "), std::string::npos);
  EXPECT_NE(copies.lines[0].find(why), std::string::npos) << copies.lines[0];
}

TEST_F(CopiesOfRows, ASourceThatChangesValuesIsFoundOut) {
  Rows::adds_one = true;
  write<float>(H5T_IEEE_F32LE);
  const auto source = open();
  const Normalizer normalizer = measured(*source);
  const std::string expected = all_of(*source, normalizer);
  expect_not_used(use(source, normalizer), source, "datasource 'rows' makes other values of them");
  EXPECT_TRUE(all_of(*open(), normalizer) == expected) << "the originals are read again";
}

TEST_F(CopiesOfRows, OneMemberForTwoFieldsHasNoCopy) {
  Rows::two_fields = true;
  write<float>(H5T_IEEE_F32LE);
  const auto source = open();
  expect_not_used(use(source, measured(*source)), source, "makes more than one field of ");
}

TEST_F(CopiesOfRows, WhatCannotHoldTheValuesHasNoCopy) {
  write<int16_t>(H5T_STD_I16LE);
  const auto source = open();
  expect_not_used(use(source, measured(*source)), source, "which cannot hold standardised values to the bit");
  Rows::dtype = sdk::f64;
  write<float>(H5T_IEEE_F32LE);
  const auto wide = open();
  expect_not_used(use(wide, measured(*wide)), wide, "which cannot hold standardised values to the bit");
  EXPECT_FALSE(std::filesystem::exists(Rows::file + ".normalized.h5"));
}

}  // namespace
}  // namespace headroom
