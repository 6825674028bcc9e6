// Which rows of a field a model's target is, told from their values alone.
#include "train/stitch.hpp"

#include <cmath>
#include <gtest/gtest.h>

#include "headroom/sdk/fields.hpp"

namespace headroom {
namespace {

// Two fields of five rows by two; the second says of no rows.
class Rows : public PredictInput {
 public:
  uint64_t samples() const override { return 2; }
  uint64_t batch_size() const override { return 2; }
  std::optional<Batch> read(uint64_t) override { return std::nullopt; }
  std::optional<SamplePosition> position(size_t field, uint64_t sample) const override {
    if (field == 1) return std::nullopt;
    return SamplePosition{0, 0, "one", {static_cast<int64_t>(sample), 5, 9}};
  }
};

class TargetRowsTest : public testing::Test {
 protected:
  TargetRowsTest() {
    for (const char* name : {"force", "other"}) {
      Field& field = fields_.emplace_back();
      field.name = name;
      field.dtype = sdk::f32;
      field.shape = {5, 2};
    }
  }
  // Of a batch of two samples whose field is `values`, and a target made of it.
  std::optional<FieldRows> found(at::Tensor values, const at::Tensor& target) {
    Batch batch;
    for (int field = 0; field < 2; ++field) {
      batch.fields.push_back({values.data_ptr(), {kDLCPU, 0}, 3, sdk::f32, shape_, nullptr, 0});
    }
    const Rows input;
    TargetRows rows(fields_, input);
    EXPECT_TRUE(rows.places_known());
    rows.compare(batch, 0, torch::zeros_like(target), target);
    return rows.found();
  }

  std::vector<Field> fields_;
  int64_t shape_[3] = {2, 5, 2};
  const at::Tensor counted_ = torch::arange(20, at::kFloat).view({2, 5, 2});
};

TEST_F(TargetRowsTest, AreFoundWhereverTheyBegin) {
  for (const int64_t first : {0, 1, 2}) {
    const auto rows = found(counted_, counted_.narrow(1, first, 3));
    ASSERT_TRUE(rows);
    EXPECT_EQ(rows->field, 0u);
    EXPECT_EQ(rows->first, static_cast<uint64_t>(first));
    EXPECT_EQ(rows->width, 2u);
  }
  EXPECT_EQ(found(counted_, counted_.select(1, 4))->first, 4u) << "one row, without an axis of rows";
  EXPECT_EQ(found(counted_, counted_.narrow(1, 1, 3).to(at::kDouble))->first, 1u);
}

TEST_F(TargetRowsTest, AreToldApartByALaterSample) {
  at::Tensor values = counted_.clone();
  values[0].fill_(3);
  EXPECT_EQ(found(values, values.narrow(1, 1, 3))->first, 1u) << "the first sample alone fits anywhere";
}

TEST_F(TargetRowsTest, ANaNIsEqualToItself) {
  at::Tensor values = counted_.clone();
  values[0][2][1] = NAN;
  EXPECT_EQ(found(values, values.narrow(1, 1, 3))->first, 1u);
}

TEST_F(TargetRowsTest, WhatIsMadeAnotherWayIsNone) {
  EXPECT_FALSE(found(counted_, counted_.narrow(1, 1, 3) * 2));
  EXPECT_FALSE(found(counted_, counted_.narrow(2, 0, 1))) << "one channel of two";
  EXPECT_FALSE(found(counted_, counted_.to(at::kLong)));
}

}  // namespace
}  // namespace headroom
