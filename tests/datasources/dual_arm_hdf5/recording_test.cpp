// One episode beside those of a source: headroom.predict/1.
#include "plugins/recording.hpp"

#include "data/slots.hpp"
#include "dual_arm_source.hpp"

namespace headroom {
namespace {

class RecordedEpisode : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    std::filesystem::create_directory(folder_ / "run");
    std::filesystem::create_directory(folder_ / "new");
    write_episode(folder_ / "run", {.number = 0, .steps = 12});
    write_episode(folder_ / "run", {.number = 1, .steps = 9, .simulated = false});
    source_ = open_episodes(folder_ / "run", "train_ratio = 1.0\nsamples_per_episode = 1");
  }
  std::unique_ptr<Recording> open(const std::filesystem::path& path) const {
    return Recording::open(dual_arm_plugin(), source_, path);
  }
  std::string refusal(const EpisodeSpec& spec) const {
    const auto file = write_episode(folder_ / "new", spec);
    return sentence_of(folder_, Exit::data, [&] { open(file); });
  }
  static std::vector<DualArmSample> read(const Source& source, Recording& recording,
                                         const std::vector<uint64_t>& steps) {
    Slot slot(source.fields(), static_cast<int64_t>(steps.size()));
    const auto fields = slot.tensors(0, static_cast<int64_t>(steps.size()));
    recording.read(steps, fields);
    const auto part = [&](size_t field, size_t i, auto& values) {
      using Value = typename std::decay_t<decltype(values)>::value_type;
      const auto count = static_cast<size_t>(source.fields()[field].elements());
      const auto* first = static_cast<const Value*>(fields[field].data) + i * count;
      values.assign(first, first + count);
    };
    std::vector<DualArmSample> samples(steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      part(0, i, samples[i].image);
      part(1, i, samples[i].qpos);
      part(2, i, samples[i].action);
      part(3, i, samples[i].is_pad);
    }
    return samples;
  }
  std::shared_ptr<const Source> source_;
};

// An episode of the run's own: the same samples as training draws them, in its statistics.
TEST_F(RecordedEpisode, EveryStepAsTrainingReadsIt) {
  for (const uint64_t number : {0, 1}) {
    const std::string name = "episode_" + std::to_string(number);
    const auto recording = open(folder_ / "run" / (name + ".hdf5"));
    const uint64_t steps = number == 0 ? 12 : 9;
    ASSERT_EQ(recording->steps(), steps);
    const auto index = static_cast<uint64_t>(source_->groups(0)[1].name == name);
    for (uint64_t step = 0; step < steps; ++step)
      EXPECT_EQ(read(*source_, *recording, {step})[0],
                read_sample(*source_, index, key_that_starts_at(step, steps), /*augment=*/true))
          << name << " " << step;
    const auto together = read(*source_, *recording, {5, 0, 5});
    EXPECT_EQ(together[0], together[2]);
    EXPECT_EQ(together[1], read(*source_, *recording, {0})[0]);
  }
}

// Longer than all the run knows: what is behind the fields' end is left out.
TEST_F(RecordedEpisode, MayBeLongerThanTheRunsOwn) {
  const auto recording = open(write_episode(folder_ / "new", {.number = 3, .steps = 30}));
  ASSERT_EQ(recording->steps(), 30u);
  // In this order, what is written behind a field's end would spoil what is there already.
  const auto samples = read(*source_, *recording, {29, 0});
  EXPECT_EQ(samples[1].is_pad, std::vector<uint8_t>(12, 0));
  const auto& channel = source_->fields()[2].channels[0];
  EXPECT_NEAR(double{samples[1].action[11 * 14]} * channel.std + channel.mean, 30.0 + 11.0 + 0.5, 1e-4);
  EXPECT_EQ(samples[0].is_pad[0], 0);
  EXPECT_EQ(samples[0].is_pad[1], 1);
}

TEST_F(RecordedEpisode, WhatDoesNotSuitTheRunIsRefused) {
  EXPECT_EQ(refusal({.number = 1, .joints = 7}),
            "[dual_arm_hdf5] DIR/new/episode_1.hdf5: /observations/qpos has 7 joints, 14 in DIR/run/episode_0.hdf5; it "
            "must be of the robot that the others are of");
  EXPECT_EQ(refusal({.number = 2, .cameras = {"left"}}),
            "[dual_arm_hdf5] DIR/new/episode_2.hdf5: /observations/images has no camera 'top'; it has left");
  EXPECT_EQ(
      refusal({.number = 3, .height = 8}),
      "[dual_arm_hdf5] DIR/new/episode_3.hdf5: /observations/images/left has frames of 8x8, others have 6x8; it must "
      "have frames of their size");
  const auto text = folder_ / "new/text.hdf5";
  write_text(text, "no HDF5 at all");
  EXPECT_NE(sentence_of(folder_, Exit::data, [&] { open(text); }).find("DIR/new/text.hdf5"), std::string::npos);
}

}  // namespace
}  // namespace headroom
