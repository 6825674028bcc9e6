#include <gtest/gtest.h>

#include "memory/growth.hpp"

namespace headroom {
namespace {

constexpr int64_t mib = 1 << 20;

// The first sentence within `windows` windows; `held` tells what activations hold after each.
template <class Held>
std::optional<std::string> watch(int64_t windows, Held held) {
  LeakWatch leaks;
  for (int64_t i = 0; i < windows; ++i) {
    LedgerReading reading;
    reading.live_bytes[static_cast<size_t>(Owner::activations)] = held(i);
    if (auto sentence = leaks.after_window(reading)) return sentence;
  }
  return std::nullopt;
}

TEST(LeakWatch, NamesTheOwnerThatRisesWindowAfterWindow) {
  EXPECT_EQ(watch(51, [](int64_t i) { return 8 * mib + i * mib; }),
            "leak: the activations hold 50.0 MiB more than 50 windows ago, and rose in 50 of them; now 58.0 MiB");
  EXPECT_FALSE(watch(50, [](int64_t i) { return i * mib; }));
}

TEST(LeakWatch, IsSilentAboutWhatComesAndGoes) {
  EXPECT_FALSE(watch(500, [](int64_t i) { return (i % 7) * 100 * mib; }));
  EXPECT_FALSE(watch(500, [](int64_t i) { return i < 20 ? i * mib : 20 * mib; }));
}

TEST(LeakWatch, IsSilentAboutAFewBytes) {
  EXPECT_FALSE(watch(500, [](int64_t i) { return i * 1000; }));
}

TEST(LeakWatch, ACacheMayFill) {
  LeakWatch leaks;
  for (int64_t i = 0; i < 500; ++i) {
    LedgerReading reading;
    reading.live_bytes[static_cast<size_t>(Owner::cache)] = i * 100 * mib;
    EXPECT_FALSE(leaks.after_window(reading));
  }
}

TEST(LeakWatch, NamesMemoryOnNobodysAccountAndEachOnlyOnce) {
  LeakWatch leaks;
  int named = 0;
  for (int64_t i = 0; i < 500; ++i) {
    LedgerReading reading;
    reading.other_bytes = i * mib;
    if (const auto sentence = leaks.after_window(reading)) {
      ++named;
      EXPECT_NE(sentence->find("no tensor, batch or cache accounts for"), std::string::npos);
    }
  }
  EXPECT_EQ(named, 1);
}

}  // namespace
}  // namespace headroom
