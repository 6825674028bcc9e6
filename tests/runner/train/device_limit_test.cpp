// memory.device_limit without a GPU: a stand-in for the CUDA runtime that this program exports, and one for the caching
// allocator of a device, which reads LibTorch's setting as CUDA's does.
#include "memory/device_limit.hpp"

#include <algorithm>
#include <c10/core/AllocatorConfig.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <cmath>
#include <gmock/gmock.h>

#include "error.hpp"
#include "train/retry.hpp"

namespace {
constexpr int64_t mib = 1 << 20;
int device_asked = -1, runtime_says = 0;
}  // namespace

extern "C" [[gnu::visibility("default")]] int cudaSetDevice(int device) {
  device_asked = device;
  return runtime_says;
}
extern "C" [[gnu::visibility("default")]] int cudaMemGetInfo(size_t* free, size_t* total) {
  *free = 60 * mib;
  *total = 100 * mib;
  return runtime_says;
}

namespace headroom {
namespace {

using testing::HasSubstr;

constexpr DeviceRoom room{60 * mib, 100 * mib};

TEST(DecideDeviceLimit, AsTheKeySays) {
  EXPECT_EQ(decide_device_limit("auto", room).bytes, 54 * mib);
  EXPECT_EQ(decide_device_limit("auto", room).rule, "0.9 of the 60.0 MiB that are free of its 100.0 MiB");
  EXPECT_EQ(decide_device_limit("off", room).bytes, std::nullopt);
  EXPECT_EQ(decide_device_limit("50%", room).bytes, 50 * mib);
  EXPECT_EQ(decide_device_limit("50%", room).rule, "50% of its 100.0 MiB");
  EXPECT_EQ(decide_device_limit(std::to_string(8 * mib), room).bytes, 8 * mib);
  EXPECT_EQ(decide_device_limit(std::to_string(8 * mib), room).rule, "as told");
  EXPECT_EQ(decide_device_limit("80%", room).rule, "80% of its 100.0 MiB; above the 60.0 MiB that are free on it now");
  EXPECT_EQ(decide_device_limit(std::to_string(800 * mib), room).bytes, 100 * mib);
  EXPECT_THAT(decide_device_limit(std::to_string(800 * mib), room).rule, HasSubstr("held to the 100.0 MiB"));
  for (const char* text : {"", "101%", "-5", "much", "0"}) EXPECT_THROW(decide_device_limit(text, room), Error) << text;
}

TEST(ReadDeviceRoom, AsksTheRuntimeForThisDevice) {
  const auto read = read_device_room(c10::Device(c10::kCUDA, 1));
  ASSERT_TRUE(read);
  EXPECT_EQ(device_asked, 1);
  EXPECT_EQ(read->free_bytes, 60 * mib);
  EXPECT_EQ(read->total_bytes, 100 * mib);
  runtime_says = 2;
  EXPECT_FALSE(read_device_room(c10::Device(c10::kCUDA, 1)));
  runtime_says = 0;
}

std::string seen_settings;  // the last that LibTorch handed to the device

double fraction_seen() {
  const std::string key = "per_process_memory_fraction:";
  return std::stod(seen_settings.substr(seen_settings.find(key) + key.size()));
}

class DeviceLimits : public testing::Test {
 protected:
  // Once for all: the keys of a device can be registered once.
  static void SetUpTestSuite() {
    using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
    if (Config::getKeys().contains("per_process_memory_fraction")) return;
    Config::registerDeviceConfigParserHook([](const std::string& settings) { seen_settings = settings; },
                                           {"per_process_memory_fraction"});
  }
  void SetUp() override {
    c10::CachingAllocator::setAllocatorSettings("");
    seen_settings = "unset";
    limit_device_memory(room, "50%");
    if (seen_settings == "unset") GTEST_SKIP() << "this LibTorch has devices of its own";
  }
};

TEST_F(DeviceLimits, AreTheFractionThatLibTorchReads) {
  EXPECT_DOUBLE_EQ(fraction_seen(), 0.5);
  limit_device_memory(room, std::to_string(10 * mib));
  EXPECT_NEAR(fraction_seen(), 0.1, 1e-9);
}

TEST_F(DeviceLimits, LeaveWhatTheUserHasSet) {
  c10::CachingAllocator::setAllocatorSettings(
      "garbage_collection_threshold:0.8,per_process_memory_fraction:0.9,max_split_size_mb:100");
  limit_device_memory(room, "50%");
  EXPECT_THAT(seen_settings, HasSubstr("garbage_collection_threshold:0.8"));
  EXPECT_THAT(seen_settings, HasSubstr("max_split_size_mb:100"));
  EXPECT_DOUBLE_EQ(fraction_seen(), 0.5);
  EXPECT_EQ(seen_settings.find("0.9"), std::string::npos) << seen_settings;
}

TEST_F(DeviceLimits, OffSetsNothing) {
  seen_settings = "unset";
  EXPECT_FALSE(limit_device_memory(room, "off").bytes);
  EXPECT_EQ(seen_settings, "unset");
}

TEST_F(DeviceLimits, WhereNoneCanBeSetThatIsToldOrRefused) {
  const DeviceLimit automatic = limit_device_memory(std::nullopt, "auto");
  EXPECT_FALSE(automatic.bytes);
  EXPECT_THAT(automatic.rule, HasSubstr("no CUDA runtime"));
  try {
    limit_device_memory(std::nullopt, "50%");
    FAIL();
  } catch (const Error& problem) {
    EXPECT_EQ(problem.exit_code(), Exit::bad_input);
    EXPECT_THAT(problem.what(), HasSubstr("no CUDA runtime"));
  }
}

// Keeps what is freed, like CUDA's, and refuses beyond its fraction of 100 MiB.
class StandIn : public c10::DeviceAllocator {
 public:
  void take(int64_t bytes) {
    const int64_t most = std::llround(fraction_seen() * 100 * mib), more = std::max<int64_t>(bytes - kept(), 0);
    TORCH_CHECK_WITH(OutOfMemoryError, reserved_ + more <= most, "out of memory. Tried to allocate ", bytes,
                     " bytes.\nMore about it.");
    reserved_ += more;
    allocated_ += bytes;
  }
  void give(int64_t bytes) { allocated_ -= bytes; }
  int64_t reserved() const { return reserved_; }

  c10::DataPtr allocate(size_t) override { return {}; }
  void copy_data(void*, const void*, size_t) const override {}
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override { reserved_ = allocated_; }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats statistics;
    statistics.allocated_bytes[0].current = allocated_;
    statistics.reserved_bytes[0].current = reserved_;
    return statistics;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}

 private:
  int64_t kept() const { return reserved_ - allocated_; }
  int64_t allocated_ = 0, reserved_ = 0;
};

TEST_F(DeviceLimits, AShortageThereIsReliefThenASmallerMicroBatchThenASentence) {
  static StandIn device;
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &device);
  static const Experiment experiment;
  std::vector<std::string> actions;
  Retry retry(MicroBatch(8, /*adapts=*/true), c10::Device(c10::DeviceType::PrivateUse1, 0),
              Advice(experiment, "", /*recomputes=*/false),
              [&](const Shortage&, const std::string& action) { actions.push_back(action); });
  const auto window = [&](int64_t sample_bytes) {
    for (;;) {
      const char* doing = "forward";
      Shortage shortage;
      if (attempt_within_memory(shortage, doing, retry.size(), [&] {
            device.take(retry.size() * sample_bytes);
            device.give(retry.size() * sample_bytes);
          }))
        break;
      retry.after(shortage);
    }
    retry.succeeded();
  };
  limit_device_memory(room, "50%");
  window(5 * mib);
  EXPECT_EQ(device.reserved(), 40 * mib) << "kept for the next";
  EXPECT_TRUE(actions.empty());
  window(10 * mib);
  EXPECT_EQ(retry.size(), 4);
  EXPECT_EQ(device.reserved(), 40 * mib) << "what was kept had to go before";
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(actions[0], "40 MB of free memory given back, repeated as it was");
  EXPECT_EQ(actions[1], "0 MB of free memory given back, micro-batch 4 from here on");
  try {
    window(60 * mib);
    FAIL();
  } catch (const Error& problem) {
    EXPECT_EQ(problem.exit_code(), Exit::does_not_fit);
    EXPECT_THAT(problem.what(), HasSubstr("no memory for forward with a micro-batch of 1 (out of memory. Tried to "
                                          "allocate 62914560 bytes.)"));
  }
}

}  // namespace
}  // namespace headroom
